import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, type RunnerTask } from "vitest";

/**
 * Records which file and which tests this process runs, for the program that ends a process without progress. Written
 * synchronously: a test that blocks the event loop sends no messages.
 */
const folder = process.env["SKEIN_TEST_PROGRESS"];

if (folder) {
  const running = new Map<string, number>();
  const file = expect.getState().testPath;
  const write = (phase: "loading" | "tests" | "ending") =>
    writeFileSync(
      join(folder, `${process.pid}.json`),
      JSON.stringify({ file, phase, tests: [...running.keys()], timeoutMs: Math.max(0, ...running.values()) }),
    );
  write("loading");
  beforeAll(() => write("tests"));
  beforeEach(({ task }) => {
    running.set(nameOf(task), task.timeout);
    write("tests");
  });
  afterEach(({ task }) => {
    running.delete(nameOf(task));
    write("tests");
  });
  afterAll(() => write("ending"));
}

function nameOf(task: Pick<RunnerTask, "name" | "suite">): string {
  return task.suite === undefined ? task.name : `${nameOf(task.suite)} > ${task.name}`;
}
