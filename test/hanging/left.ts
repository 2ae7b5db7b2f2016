import { spawn } from "node:child_process";
import { test } from "vitest";

test("leaves a process behind", () => {
  spawn("sleep", ["600"], { detached: true, stdio: "ignore" }).unref();
});
