import { parentPort, workerData } from "node:worker_threads";
import { SessionError } from "../../session/errors.ts";
import { openStore } from "../../stores/open-store.ts";
import { foreignFormat } from "./formats.ts";
import { importForeignFile } from "./import-file.ts";
import type { ThreadAnswer, ThreadStart, ThreadTask } from "./import-threads.ts";

// The program of a worker thread that `ImportThreads` starts. Imports a file per message; a null message ends the thread.
const { storeUrl, target } = workerData as ThreadStart;
const store = await openStore(storeUrl);

let underWay: Promise<void> = Promise.resolve();
parentPort?.on("message", (task: ThreadTask | null) => {
  underWay = task === null ? underWay.then(end) : Promise.all([underWay, answer(task)]).then(() => {});
});

async function answer(task: ThreadTask): Promise<void> {
  parentPort?.postMessage(await answerTo(task));
}

async function end(): Promise<void> {
  await store[Symbol.asyncDispose]();
  parentPort?.close();
}

async function answerTo({ format, path }: ThreadTask): Promise<ThreadAnswer> {
  try {
    return { path, done: await importForeignFile({ ...target, store }, foreignFormat(format), path) };
  } catch (error) {
    const code = error instanceof SessionError ? error.code : null;
    return { path, failed: { code, message: (error as Error).message } };
  }
}
