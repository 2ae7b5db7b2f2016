import { on } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { SessionError } from "../../session/errors.ts";
import { openStore } from "../../stores/open-store.ts";
import { foreignFormat } from "./formats.ts";
import { importForeignFile } from "./import-file.ts";
import type { ThreadAnswer, ThreadStart, ThreadTask } from "./import-threads.ts";
import type { ImportTarget } from "./stored-log.ts";

// The program of a thread that `ImportThreads` starts: imports the files that it is told of, until it is told null.
const port = parentPort;
if (port !== null) {
  const { storeUrl, target } = workerData as ThreadStart;
  await using store = await openStore(storeUrl);
  for await (const [task] of on(port, "message") as AsyncIterable<[ThreadTask | null]>) {
    if (task === null) break;
    port.postMessage(await answerTo({ ...target, store }, task));
  }
}
port?.close();

async function answerTo(target: ImportTarget, { format, path }: ThreadTask): Promise<ThreadAnswer> {
  try {
    return { done: await importForeignFile(target, foreignFormat(format), path) };
  } catch (error) {
    const code = error instanceof SessionError ? error.code : null;
    return { failed: { code, message: (error as Error).message } };
  }
}
