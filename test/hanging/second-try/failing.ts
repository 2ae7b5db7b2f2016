import { expect, test } from "vitest";

test("fails", () => {
  expect(process.env.SKEIN_TEST_MARKER).toBeUndefined();
});
