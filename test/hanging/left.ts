import { spawn } from "node:child_process";
import { test } from "vitest";

test("leaves a process behind, and one that hides its variables as skein serve does", () => {
  const { PATH, TMPDIR } = process.env;
  for (const env of [process.env, { PATH, TMPDIR }])
    spawn("sleep", ["600"], { detached: true, stdio: "ignore", env }).unref();
});
