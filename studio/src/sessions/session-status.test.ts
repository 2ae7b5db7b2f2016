import { expect, test } from "vitest";
import { markOf, titleOf } from "./session-status.ts";

test("derives the mark of a session from its runs, else from its status", () => {
  const running = { runId: "r" };
  const having = (state: "requested" | "started" | "parked" | "answered") => [{ runId: "r", state }];
  expect(markOf({ status: "active", running, openRuns: having("started") })).toBe("running");
  expect(markOf({ status: "active", running: null, openRuns: having("started") })).toBe("interrupted");
  expect(markOf({ status: "active", running: null, openRuns: having("parked") })).toBe("asking");
  const asking = [{ runId: "r", state: "started" as const, questions: ["q"] }];
  expect(markOf({ status: "active", running, openRuns: asking })).toBe("asking");
  for (const state of ["requested", "answered"] as const) {
    expect(markOf({ status: "active", running: null, openRuns: having(state) })).toBe("requested");
  }
  expect(markOf({ status: "active", running: null, openRuns: [] })).toBe("active");
  expect(markOf({ status: "closed", running: null, openRuns: having("started") })).toBe("closed");
});

test("titles a session by its name, else by its first message", () => {
  expect(titleOf({ name: "Trip", firstMessage: "Where to?" })).toBe("Trip");
  expect(titleOf({ name: " \n", firstMessage: "Where\n\tto?" })).toBe("Where to?");
  expect(titleOf({ name: null, firstMessage: null })).toBe("New session");
});

test("shortens any title to one line", () => {
  expect(titleOf({ name: "\u001b[31mred\u0000 text\u2028x", firstMessage: null })).toBe("[31mred text x");
  expect(titleOf({ name: "photo\u202egnp.exe\u2066", firstMessage: null })).toBe("photognp.exe");
  expect(titleOf({ name: "x".repeat(5_000_000), firstMessage: null })).toHaveLength(200);
});
