import { test } from "vitest";

test("ends its process", async () => {
  process.kill(process.pid, "SIGKILL");
  await new Promise(() => {});
});
