import type { WireRunEvent } from "skein/client";
import { expect, test } from "vitest";
import { NO_EVENTS, stepGroupRun } from "./group-run-state.ts";

const after = (...events: readonly object[]) =>
  events.reduce((state: typeof NO_EVENTS, event) => stepGroupRun(state, event as WireRunEvent), NO_EVENTS);
const selected = { type: "agent-selected", agent: "writer", move: 1 };
const text = (said: string) => ({ type: "text-delta", agent: "writer", round: 1, text: said });

test("collects the text of the agent that is speaking", () => {
  const { moves } = after(selected, text("A "), text("cat."));
  expect(moves).toMatchObject([{ agent: "writer", status: "speaking", text: "A cat." }]);
});

test("discards the partial answer when a model is retried", () => {
  const round = { type: "round-started", agent: "writer", round: 1 };
  const retry = { type: "model-retry", agent: "writer", round: 2, attempt: 1, delayMs: 1, error: {} };
  expect(after(selected, round, text("Kept."), round, text("Void"), retry, text(" New.")).moves[0]?.text).toBe(
    "Kept. New.",
  );
});

test("records how each move and the group ended", () => {
  const finished = { type: "agent-finished", agent: "writer", kind: "passed", turnId: null, text: "" };
  const state = after(selected, finished, { type: "group-finished", outcome: { reason: "all-passed" } });
  expect(state.moves[0]?.status).toBe("passed");
  expect(state).toMatchObject({ failed: false, outcome: "The group is done: all agents passed." });
  expect(after(selected, { type: "group-failed", error: { message: "" } }).moves[0]?.status).toBe("stopped");
  expect(after({ type: "group-failed", error: { message: "Stopped." } })).toMatchObject({
    failed: true,
    outcome: "Stopped.",
  });
});

test("keeps a call waiting until it is answered or the group ends", () => {
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

test("ignores unknown events, and text of an agent that was not selected", () => {
  expect(after({ type: "something-new" }, text("lost"))).toEqual(NO_EVENTS);
});
