import { existsSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";

test("fails when it is run first", () => {
  const marker = process.env.SKEIN_TEST_MARKER as string;
  const isSecond = existsSync(marker);
  writeFileSync(marker, "");
  expect(isSecond).toBe(true);
});

test("passes", () => {
  expect(process.env.SKEIN_TEST_MARKER).toBeDefined();
});
