import { createReadStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { PRIVATE_DIRECTORY } from "../../internal/private-file.ts";
import { blobHash, type FindBlob, type StoredBlob } from "../../session/blob.ts";
import { SessionError, show } from "../../session/errors.ts";
import { exists, writeNewFile } from "../commands/keeping/write-new-file.ts";

/** Writes blobs to a folder, each to a file whose name is its hash. Those that are there already are kept. */
export function writeBlobsTo(folder: string): (blob: StoredBlob) => Promise<void> {
  return async (blob) => {
    await mkdir(folder, { ...PRIVATE_DIRECTORY, recursive: true });
    const path = join(folder, blobHash(blob.blob) as string);
    if (!(await exists(path))) await writeNewFile(path, blob.stream());
  };
}

/** Finds blobs in such a folder. @throws {SessionError} `INVALID_OPTION` if it is not there. */
export async function findBlobsIn(folder: string): Promise<FindBlob> {
  const found = await stat(folder).catch(() => null);
  if (found?.isDirectory() !== true)
    throw new SessionError("INVALID_OPTION", `--blobs is ${show(folder)}, which is no folder; check the path.`);
  return async (blob) => {
    const path = join(folder, blobHash(blob) as string);
    const file = await stat(path).catch(() => null);
    if (file === null) return null;
    // `end` of a stream of a file is inclusive.
    const stream: StoredBlob["stream"] = ({ start = 0, end = file.size } = {}) =>
      end > start ? createReadStream(path, { start, end: end - 1 }) : emptyStream();
    const bytes: StoredBlob["bytes"] = async (range) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream(range)) chunks.push(chunk);
      return Buffer.concat(chunks);
    };
    return { blob, size: file.size, stream, bytes };
  };
}

async function* emptyStream(): AsyncGenerator<Uint8Array> {}
