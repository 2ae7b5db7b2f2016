import type { WireRunEvent } from "skein/client";
import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/log/entry.ts";
import { roundsToShow } from "./live-rounds.ts";
import { NO_EVENTS, stepRun, type RunState } from "./run-state.ts";

const told = (...events: readonly unknown[]): RunState =>
  events.reduce<RunState>((state, event, index) => stepRun(state, event as WireRunEvent, index), NO_EVENTS);
const finished = (content: string, agent?: string): unknown => ({
  type: "round-finished",
  round: 1,
  message: { role: "assistant", content },
  stopReason: "stop",
  ...(agent === undefined ? {} : { agent }),
});

test("assembles the text, thinking and calls of a model", () => {
  const { rounds } = told(
    { type: "round-started", round: 1 },
    { type: "thinking-delta", round: 1, text: "Hm." },
    { type: "text-delta", round: 1, text: "He" },
    { type: "text-delta", round: 1, text: "llo" },
    { type: "tool-call-delta", round: 1, index: 1, id: "c2", name: "find" },
    { type: "tool-call-delta", round: 1, index: 1, arguments: '{"a":' },
    { type: "tool-call-delta", round: 1, index: 1, arguments: "1}" },
  );
  expect(rounds).toHaveLength(1);
  expect(rounds[0]).toMatchObject({ text: "Hello", thinking: "Hm.", endedAt: null });
  expect(rounds[0]?.calls[1]).toEqual({ id: "c2", name: "find", arguments: '{"a":1}' });
});

test("discards the partial answer when a model is retried", () => {
  const { rounds } = told(
    { type: "text-delta", round: 1, text: "Wro" },
    { type: "model-retry", round: 1, attempt: 1, delayMs: 10, error: {} },
    { type: "text-delta", round: 1, text: "Right" },
  );
  expect(rounds).toMatchObject([{ text: "Right", attempt: 2 }]);
});

test("separates the rounds of a group's agents, and does not end with one of them", () => {
  const state = told(
    { type: "agent-selected", agent: "writer", move: 1 },
    { type: "text-delta", round: 1, text: "One", agent: "writer" },
    finished("One", "writer"),
    { type: "run-finished", truncated: false, usage: null, agent: "writer" },
    { type: "agent-selected", agent: "critic", move: 2 },
    { type: "text-delta", round: 1, text: "Two", agent: "critic" },
  );
  expect(state.rounds.map(({ agent, text }) => [agent, text])).toEqual([
    ["writer", "One"],
    ["critic", "Two"],
  ]);
  expect(state).toMatchObject({ ended: false, speaker: "critic" });
});

const approval = {
  question: "q1",
  callId: "c1",
  name: "pay",
  arguments: {},
  effects: "commands",
  reach: null,
} as const;
const asked = { type: "approval-required", round: 1, approval };

test("separates the question of a run inside a tool from a call with the same id, until it is answered", () => {
  const inner = { ...approval, question: "q2", innerRunId: "r2" };
  const both = told(asked, { ...asked, approval: inner });
  expect([both.tools["c1"], both.inner]).toEqual([{ state: "waiting", approval }, [inner]]);
  const settled = { type: "approval-settled", runId: "r", round: 1, callId: "c1", question: "q2" } as const;
  expect(stepRun(both, settled, 1)).toMatchObject({ tools: both.tools, inner: [] });
});

test("discards unfinished rounds when another process claims the run, and keeps finished ones", () => {
  const state = told(
    { type: "run-started", claim: 1 },
    finished("One"),
    { type: "text-delta", round: 2, text: "Hal" },
    { type: "tool-started", round: 2, callId: "c1", name: "pay", arguments: {} },
    { type: "run-started", claim: 2 },
    { type: "text-delta", round: 2, text: "Two" },
  );
  expect(state.rounds.map(({ message, text }) => message?.content ?? text)).toEqual(["One", "Two"]);
  expect(state.tools).toEqual({});
});

test("shows no questions of a parked run, as they are in the log", () => {
  const { tools, ended } = told(asked, { type: "run-parked", questions: [approval] });
  expect([tools, ended]).toEqual([{}, false]);
});

test("follows a call from its approval to its result", () => {
  const waiting = told(asked);
  expect(waiting.tools["c1"]).toEqual({ state: "waiting", approval });
  const message = { role: "tool", toolCallId: "c1", name: "pay", content: "Paid." };
  const done = stepRun(waiting, { type: "tool-finished", round: 1, callId: "c1", message } as never, 1);
  expect(done.tools["c1"]).toEqual({ state: "done", message });
});

test("ends with the problem and the unfinished rounds of a failed run", () => {
  const problem = { code: "MODEL_FAILED", message: "The model failed." };
  const state = told({ type: "text-delta", round: 1, text: "Hal" }, { type: "run-failed", error: problem });
  expect(state).toMatchObject({ ended: true, problem, rounds: [{ endedAt: 1 }] });
});

test("shows the arguments of a call from its start, before the round ends", () => {
  const call = { type: "tool-started", round: 1, callId: "c1", name: "pay", arguments: { amount: 3 } };
  const shown = [{ id: "c1", name: "pay", arguments: '{"amount":3}' }];
  expect(told({ type: "round-started", round: 1 }, call).rounds[0]?.calls).toEqual(shown);
  const named = { type: "tool-call-delta", round: 1, index: 0, id: "c1", name: "pay" };
  expect(told(named, call).rounds[0]?.calls).toEqual(shown);
  const streamed = told({ ...named, arguments: '{ "amount": 3 }' }, call);
  expect(streamed.rounds[0]?.calls[0]?.arguments).toBe('{ "amount": 3 }');
});

test("does not add the call of an earlier run to a new round", () => {
  const call = { type: "tool-started", round: 0, callId: "c1", name: "pay", arguments: {} };
  expect(told(call, { type: "round-started", round: 1 }).rounds).toMatchObject([{ calls: [] }]);
});

test("shows a round until it is in the transcript", () => {
  const { rounds } = told({ type: "round-started", round: 1 }, finished("Hello"));
  const entry = { type: "message", id: "a", message: { role: "assistant", content: "Hello" } } as Entry;
  expect(roundsToShow(rounds, [], 0)).toHaveLength(1);
  expect(roundsToShow(rounds, [entry], 0)).toHaveLength(0);
  expect(roundsToShow(rounds, [], 2)).toHaveLength(0);
  expect(roundsToShow(told({ type: "round-started", round: 1 }).rounds, [entry], 9)).toHaveLength(1);
});

test("shows an answer once while its tools run, and does not hide one with the text of an earlier one", () => {
  const call = { id: "c1", name: "find", arguments: "{}" };
  const said = (message: object): Entry => ({ type: "message", id: "a", message }) as Entry;
  const calling = told({ type: "tool-call-delta", round: 1, index: 0, id: "c1", name: "find", arguments: "{}" }).rounds;
  expect(roundsToShow(calling, [said({ role: "assistant", content: null, toolCalls: [call] })], 9)).toHaveLength(0);
  const { rounds } = told({ type: "text-delta", round: 1, text: "Yes" });
  const [answer, question] = [said({ role: "assistant", content: "Yes" }), said({ role: "user", content: "Sure?" })];
  expect(roundsToShow(rounds, [answer, question], 9)).toHaveLength(1);
  expect(roundsToShow(rounds, [question, answer], 9)).toHaveLength(0);
});
