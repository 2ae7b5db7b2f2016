import { expect, test } from "vitest";
import { formatTime } from "./format.ts";

test("shows the day only if it is not today, and an invalid time unchanged", () => {
  const now = new Date("2026-03-04T12:00:00Z");
  expect(formatTime("2026-03-04T12:00:00.000Z", now)).not.toMatch(/2026|Mar/);
  expect(formatTime("2020-01-04T12:00:00.000Z", now)).toMatch(/2020/);
  expect(formatTime("never", now)).toBe("never");
});
