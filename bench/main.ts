import { CHILD_FLAG, serveTask } from "./run-in-child.ts";

const [first, ...rest] = process.argv.slice(2);
if (first === CHILD_FLAG) await serveTask(rest);
// What all sections load is not for a process with one task to load and to hold.
else process.exitCode = await (await import("./run-bench.ts")).runBench(process.argv.slice(2));
