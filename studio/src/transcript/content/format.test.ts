import { expect, test } from "vitest";
import { formatCost, formatTime, formatTokens } from "./format.ts";

test("shortens tokens without making them look like none", () => {
  expect([0, 999, 1234, 34_500, 999_600, 1_250_000].map(formatTokens)).toEqual([
    "0",
    "999",
    "1.2k",
    "35k",
    "1.0M",
    "1.3M",
  ]);
});

test("shows small costs as more than nothing", () => {
  expect([0, 0.00001, 0.00042, 0.0421, 1.5].map(formatCost)).toEqual(["$0", "<$0.0001", "$0.0004", "$0.042", "$1.50"]);
});

test("says the day only where it is another one, and shows what is no time as it is", () => {
  const now = new Date("2026-03-04T12:00:00Z");
  expect(formatTime("2026-03-04T12:00:00.000Z", now)).not.toMatch(/2026|Mar/);
  expect(formatTime("2020-01-04T12:00:00.000Z", now)).toMatch(/2020/);
  expect(formatTime("never", now)).toBe("never");
});
