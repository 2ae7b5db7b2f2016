import { expect, test } from "vitest";
import { daysOf, problemOf, timesOf } from "./period.ts";

const NOW = Date.parse("2026-03-02T15:30:00.000Z");

test("the last days include today", () => {
  expect(timesOf({ kind: "last", days: 7 }, NOW)).toEqual({
    from: "2026-02-24T00:00:00.000Z",
    to: "2026-03-03T00:00:00.000Z",
  });
  expect(daysOf({ kind: "last", days: 3 }, [], NOW)).toEqual(["2026-02-28", "2026-03-01", "2026-03-02"]);
});

test("a custom period includes both of its days, and may be open at either end", () => {
  const period = { kind: "custom", first: "2026-01-30", last: "2026-02-01" } as const;
  expect(timesOf(period, NOW)).toEqual({ from: "2026-01-30T00:00:00.000Z", to: "2026-02-02T00:00:00.000Z" });
  expect(daysOf(period, ["2026-01-31"], NOW)).toEqual(["2026-01-30", "2026-01-31", "2026-02-01"]);
  expect(timesOf({ kind: "custom", first: "", last: "" }, NOW)).toEqual({});
});

test("all time reaches from the first day with activity to today", () => {
  expect(timesOf({ kind: "all" }, NOW)).toEqual({});
  expect(daysOf({ kind: "all" }, ["2026-03-01", "2026-02-28"], NOW)).toHaveLength(3);
  expect(daysOf({ kind: "all" }, [], NOW)).toEqual([]);
});

test("draws only the last ten years of a longer period", () => {
  const days = daysOf({ kind: "custom", first: "1200-01-01", last: "2026-03-02" }, [], NOW);
  expect(days.length).toBe(3660);
  expect(days.at(-1)).toBe("2026-03-02");
});

test("says when the first day comes after the last", () => {
  expect(problemOf({ kind: "custom", first: "2026-02-02", last: "2026-02-01" })).toMatch(/after the last/);
  expect(problemOf({ kind: "custom", first: "2026-02-02", last: "" })).toBeNull();
});
