import { writeFileSync } from "node:fs";
import { test } from "vitest";

test.for([1, 2, 3])("waits for a while, part %i", async () => {
  const path = process.env["SKEIN_TEST_RUNNING"];
  if (path) writeFileSync(path, String(process.pid));
  await new Promise((resolve) => setTimeout(resolve, 2500));
});
