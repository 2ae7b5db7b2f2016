import { expect, test } from "vitest";
import { countFilters, isShown, NO_FILTER, patternProblem, queryOf, runsOf } from "./session-filter.ts";

test("asks the server for what it can answer, and for nothing when there is no filter", () => {
  expect(queryOf(NO_FILTER)).toEqual({});
  expect(queryOf({ search: "", userId: " ann ", cwd: "/srv", show: "closed" })).toEqual({
    userId: "ann",
    cwd: "/srv",
    status: "closed",
  });
  expect([queryOf({ ...NO_FILTER, show: "interrupted" }), runsOf("interrupted")]).toEqual([{}, "interrupted"]);
  expect([runsOf("all"), runsOf("closed"), runsOf("asking")]).toEqual([null, null, "asking"]);
  expect(queryOf({ ...NO_FILTER, show: "deleted" })).toEqual({});
});

test("sorts out itself what runs and what was interrupted, among what a search found", () => {
  const openRuns = [{ runId: "r", state: "started" }] as const;
  const interrupted = { status: "active", running: null, openRuns } as const;
  const running = { ...interrupted, running: { runId: "r" } };
  expect([interrupted, running].map((session) => isShown(session, "running"))).toEqual([false, true]);
  expect([interrupted, running].map((session) => isShown(session, "interrupted"))).toEqual([true, false]);
  expect(isShown(interrupted, "all")).toBe(true);
});

test("knows a pattern that is not one before the server has to say so", () => {
  expect(patternProblem('words "a phrase" core:(')).toBeNull();
  expect(patternProblem("word re:a+")).toBeNull();
  expect(patternProblem("word re:(")).toMatch(/not a regular expression/);
  expect(patternProblem("re:")).toMatch(/Give a pattern/);
});

test("counts the filters that are in force", () => {
  expect(countFilters({ search: "x", userId: " ", cwd: "/srv", show: "running" })).toBe(2);
});
