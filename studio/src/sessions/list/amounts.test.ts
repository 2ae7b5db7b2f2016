import { expect, test } from "vitest";
import { ageOf, formatCost, formatDuration } from "./amounts.ts";

const NOW = Date.parse("2026-05-20T12:00:00.000Z");

test.for([
  ["2026-05-20T11:59:30.000Z", "just now"],
  ["2026-05-20T12:00:09.000Z", "just now"],
  ["2026-05-20T11:56:10.000Z", "3 min ago"],
  ["2026-05-20T07:00:00.000Z", "5 h ago"],
  ["2026-05-19T10:00:00.000Z", "yesterday"],
  ["2026-05-10T10:00:00.000Z", "10 days ago"],
  ["2025-01-10T10:00:00.000Z", "Jan 10, 2025"],
  ["no time", ""],
] as const)("shows %s as %j", ([timestamp, age]) => {
  expect(ageOf(timestamp, NOW)).toBe(age);
});

test("shows the digits that a small cost needs", () => {
  expect([0, 0.00042, 0.015, 0.5, 1234.5].map((cost) => formatCost(cost))).toEqual([
    "–",
    "$0.00042",
    "$0.015",
    "$0.50",
    "$1,234.50",
  ]);
});

test("shows a duration in a suitable unit", () => {
  expect([0, 840, 1500, 90_000, 5_400_000, 172_800_000].map(formatDuration)).toEqual([
    ...["0 ms", "840 ms", "1.5 s", "1.5 min", "1.5 h", "2.0 days"],
  ]);
});

test("shows a dash for an unknown cost, and a tilde for a computed one", () => {
  expect([formatCost(null), formatCost(0, true), formatCost(1.25, true)]).toEqual(["–", "–", "~$1.25"]);
});
