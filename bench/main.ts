import { CHILD_FLAG, serveTask } from "./run-in-child.ts";

const [first, ...rest] = process.argv.slice(2);
if (first === CHILD_FLAG) await serveTask(rest);
// A process with one task must not load the modules of all sections.
else process.exitCode = await (await import("./run-bench.ts")).runBench(process.argv.slice(2));
