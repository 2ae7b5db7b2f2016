import type { WireRunEvent } from "skein/client";
import { expect, test } from "vitest";
import { NO_EVENTS, stepGroupRun } from "./group-run-state.ts";

const after = (...events: readonly object[]) =>
  events.reduce((state: typeof NO_EVENTS, event) => stepGroupRun(state, event as WireRunEvent), NO_EVENTS);
const selected = { type: "agent-selected", agent: "writer", move: 1 };
const text = (said: string) => ({ type: "text-delta", agent: "writer", round: 1, text: said });

test("gathers what the agent says whose turn it is", () => {
  const { moves } = after(selected, text("A "), text("cat."));
  expect(moves).toMatchObject([{ agent: "writer", status: "speaking", text: "A cat." }]);
});

test("forgets what a model said that has to be asked again", () => {
  const round = { type: "round-started", agent: "writer", round: 1 };
  const retry = { type: "model-retry", agent: "writer", round: 2, attempt: 1, delayMs: 1, error: {} };
  expect(after(selected, round, text("Kept."), round, text("Void"), retry, text(" New.")).moves[0]?.text).toBe(
    "Kept. New.",
  );
});

test("says how each go ended, and how the group did", () => {
  const finished = { type: "agent-finished", agent: "writer", kind: "passed", turnId: null, text: "" };
  const state = after(selected, finished, { type: "group-finished", outcome: { reason: "all-passed" } });
  expect(state.moves[0]?.status).toBe("passed");
  expect(state).toMatchObject({ failed: false, outcome: "The group is done: nobody had more to say." });
  expect(after(selected, { type: "group-failed", error: { message: "" } }).moves[0]?.status).toBe("stopped");
  expect(after({ type: "group-failed", error: { message: "Stopped." } })).toMatchObject({
    failed: true,
    outcome: "Stopped.",
  });
});

test("keeps a call waiting until it runs or the group ends", () => {
  const asked = {
    type: "approval-required",
    agent: "writer",
    round: 1,
    approval: { question: "q", callId: "1", name: "rm", arguments: {}, effects: "commands", reach: null },
  };
  expect(after(selected, asked).waiting).toEqual([{ agent: "writer", approval: asked.approval }]);
  expect(
    after(selected, asked, { type: "approval-settled", agent: "writer", callId: "1", question: "q" }).waiting,
  ).toEqual([]);
  expect(after(selected, asked, { type: "tool-started", agent: "writer", callId: "1", name: "rm" }).waiting).toEqual(
    [],
  );
});

test("passes over what it does not know, and what is said by nobody that was chosen", () => {
  expect(after({ type: "something-new" }, text("lost"))).toEqual(NO_EVENTS);
});
