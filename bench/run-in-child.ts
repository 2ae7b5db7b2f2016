import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type TaskInput, type TaskName, type TaskOutput, tasks } from "./tasks.ts";

const main = fileURLToPath(new URL("main.js", import.meta.url));

/** The first argument of a process that runs one task instead of the benchmark. */
export const CHILD_FLAG = "child";

/** Runs a task in a separate process, so that its memory and I/O are measured alone. */
export function runInChild<Name extends TaskName>(name: Name, input: TaskInput<Name>): Promise<TaskOutput<Name>> {
  return new Promise((resolve, reject) => {
    const child = fork(main, [CHILD_FLAG, name, JSON.stringify(input)], {
      execArgv: ["--expose-gc", "--no-warnings"],
      // The output of a peer must not end up in the table.
      stdio: ["ignore", 2, 2, "ipc"],
      // JSON would turn NaN into null.
      serialization: "advanced",
    });
    child.on("message", (output) => resolve(output as TaskOutput<Name>));
    child.on("error", reject);
    child.on("exit", (code, signal) =>
      reject(new Error(`The task ${name} ended with ${signal ?? `exit code ${code}`}.`)),
    );
  });
}

/** Runs the named task in a child process, and sends the result to the parent. */
export async function serveTask([name, input]: readonly string[]): Promise<void> {
  const task = tasks[name as TaskName] as (input: unknown) => Promise<unknown>;
  const output = await task(JSON.parse(input as string));
  await new Promise((resolve) => process.send?.(output, resolve));
  // A peer may leave timers or connections behind that cannot be closed.
  process.exit(0);
}
