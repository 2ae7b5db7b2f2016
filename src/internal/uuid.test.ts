import { expect, test } from "vitest";
import { uuidv7 } from "./uuid.ts";

test("has the form of a version 7 UUID", () => {
  for (let i = 0; i < 1000; i++) {
    expect(uuidv7()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test("begins with the time in milliseconds", () => {
  const before = Date.now();
  const ms = Number.parseInt(uuidv7().replaceAll("-", "").slice(0, 12), 16);
  expect(ms).toBeGreaterThanOrEqual(before);
  // A burst of ids may borrow from the milliseconds to come, never more than a few.
  expect(ms).toBeLessThan(Date.now() + 1000);
});

test("100,000 ids are unique and sorted, although the counter of one millisecond overflows", () => {
  const ids = Array.from({ length: 100_000 }, uuidv7);
  expect(ids.findIndex((id, index) => index > 0 && id <= (ids[index - 1] as string))).toBe(-1);
  expect(new Set(ids.map((id) => id.slice(19))).size).toBe(100_000);
});
