import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { CHILD_FLAG } from "./run-in-child.ts";
import type { TaskInput, TaskName } from "./tasks.ts";

const main = fileURLToPath(new URL("main.js", import.meta.url));

/** A process that runs a task and answers messages until it is disposed. */
export interface TaskProcess extends AsyncDisposable {
  /** The first message that it sent. */
  readonly said: unknown;
  /** Sends a message; resolves to the reply. */
  ask(message: object | string): Promise<unknown>;
}

/** Starts a task in a separate process; resolves after its first message. */
export async function startProcess<Name extends TaskName>(name: Name, input: TaskInput<Name>): Promise<TaskProcess> {
  const child = fork(main, [CHILD_FLAG, name, JSON.stringify(input)], {
    execArgv: ["--expose-gc", "--no-warnings"],
    stdio: ["ignore", 2, 2, "ipc"],
  });
  return {
    said: await replyOf(child),
    ask: (message) => {
      child.send(message);
      return replyOf(child);
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}

async function replyOf(child: ChildProcess): Promise<unknown> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const ended = once(child, "exit", { signal }).then(([code, killed]) => {
    throw new Error(`A process of the benchmark ended with ${killed ?? `exit code ${code}`}.`);
  });
  const replied = once(child, "message", { signal }).then(([reply]: unknown[]) => reply);
  try {
    return await Promise.race([replied, ended]);
  } finally {
    // The promise that lost the race must not cause an unhandled rejection.
    for (const each of [replied, ended]) each.catch(() => {});
    stopped.abort();
  }
}
