import { expect, test } from "vitest";
import { countFilters, isShown, NO_FILTER, patternProblem, queryOf, runsOf } from "./session-filter.ts";

test("passes to the server what it can filter, and nothing without a filter", () => {
  expect(queryOf(NO_FILTER)).toEqual({});
  expect(queryOf({ search: "", userId: " ann ", cwd: "/srv", program: "codex", show: "closed" })).toEqual({
    userId: "ann",
    cwd: "/srv",
    program: "codex",
    status: "closed",
  });
  expect([queryOf({ ...NO_FILTER, show: "interrupted" }), runsOf("interrupted")]).toEqual([{}, "interrupted"]);
  expect([runsOf("all"), runsOf("closed"), runsOf("asking")]).toEqual([null, null, "asking"]);
  expect(queryOf({ ...NO_FILTER, show: "deleted" })).toEqual({});
});

test("filters search results for running and interrupted sessions itself", () => {
  const openRuns = [{ runId: "r", state: "started" }] as const;
  const interrupted = { status: "active", running: null, openRuns } as const;
  const running = { ...interrupted, running: { runId: "r" } };
  expect([interrupted, running].map((session) => isShown(session, "running"))).toEqual([false, true]);
  expect([interrupted, running].map((session) => isShown(session, "interrupted"))).toEqual([true, false]);
  expect(isShown(interrupted, "all")).toBe(true);
});

test("detects an invalid pattern before a request", () => {
  expect(patternProblem('words "a phrase" core:(')).toBeNull();
  expect(patternProblem("word re:a+")).toBeNull();
  expect(patternProblem("word re:(")).toMatch(/not a valid regular expression/);
  expect(patternProblem("re:")).toMatch(/Give a pattern/);
});

test("counts the active filters", () => {
  expect(countFilters({ search: "x", userId: " ", cwd: "/srv", program: "pi", show: "running" })).toBe(3);
});
