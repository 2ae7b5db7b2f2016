import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onFileEnd } from "./on-file-end.ts";
import { type S3Server, startS3 } from "../scripts/s3.mjs";

let server: Promise<S3Server> | null = null;

/** A server of S3 that the tests of a file share. */
export function s3Server(): Promise<S3Server> {
  if (server === null) {
    server = startIn();
    onFileEnd(async () => {
      const ended = server;
      server = null;
      await (await ended)?.stop();
    });
  }
  return server;
}

async function startIn(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), "skein-s3-"));
  const started = await startS3(directory);
  return {
    ...started,
    stop: async () => {
      await started.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
