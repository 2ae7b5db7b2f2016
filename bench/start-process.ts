import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { CHILD_FLAG } from "./run-in-child.ts";
import type { TaskInput, TaskName } from "./tasks.ts";

const main = fileURLToPath(new URL("main.js", import.meta.url));

/** A process that does a task until it is disposed of, and answers meanwhile. */
export interface TaskProcess extends AsyncDisposable {
  /** The first thing that it said. */
  readonly said: unknown;
  /** Sends it something; resolves with its next word. */
  ask(message: object | string): Promise<unknown>;
}

/** Starts a task in a process of its own; resolves when it has said something. */
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
    // Whichever has not come about is given up, and nobody hears of that.
    for (const each of [replied, ended]) each.catch(() => {});
    stopped.abort();
  }
}
