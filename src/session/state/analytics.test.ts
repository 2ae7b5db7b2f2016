import { describe, expect, test } from "vitest";
import { assistant, call, SampleLog, timeAt, usage, user } from "../../../test/sample-log.ts";
import { computeAnalytics } from "./analytics.ts";
import type { EntryOf } from "../log/entry.ts";
import type { Message } from "../message.ts";
import { type SessionState, stateOf, turnOf } from "./state.ts";

const answer = (provider: string, model: string, tools: readonly string[] = []): Message =>
  assistant("yes", {
    provider,
    model,
    usage: usage(10, 5),
    cost: 0.25,
    toolCalls: tools.map((name, index) => call(`c${index}`, name)),
  });

describe("the analytics of a session", () => {
  test("count turns of all roles, add up tokens and cost, and name each provider, model and tool once", () => {
    const state = stateAt([
      [0, { role: "system", content: "be kind" }],
      [1, user("hello")],
      [3, answer("zeta", "two", ["search", "read"])],
      [4, { role: "tool", toolCallId: "c0", name: "unasked", content: "found" }],
      [8, answer("acme", "one", ["read", "write"])],
      [9, answer("zeta", "two")],
    ]);
    expect(computeAnalytics(state)).toEqual({
      sessionId: "sample",
      totalTurns: 6,
      totalTokens: 45,
      totalCost: 0.75,
      durationSeconds: 9,
      agentsUsed: ["zeta", "acme"],
      toolsInvoked: ["search", "read", "write"],
      avgResponseTimeMs: 1800,
      modelsUsed: ["two", "one"],
    });
  });

  test.for([
    { turns: "no turn", said: [] },
    { turns: "one turn", said: [[7, user("hello")]] as [number, Message][] },
  ])("have no duration with $turns", ({ said }) => {
    expect(computeAnalytics(stateAt(said))).toMatchObject({
      totalTurns: said.length,
      durationSeconds: 0,
      avgResponseTimeMs: 0,
      agentsUsed: [],
      toolsInvoked: [],
      modelsUsed: [],
    });
  });

  test("use the times of the turns in any order", () => {
    const state = stateAt([
      [4, user("1")],
      [0, user("2")],
      [10, user("3")],
    ]);
    expect(computeAnalytics(state)).toMatchObject({ durationSeconds: 10, avgResponseTimeMs: 5000 });
  });

  test("have no duration when all turns have the same time", () => {
    const state = stateAt([
      [5, user("1")],
      [5, user("2")],
    ]);
    expect(computeAnalytics(state)).toMatchObject({ durationSeconds: 0, avgResponseTimeMs: 0 });
  });

  test("of 200,000 turns do not overflow the stack", () => {
    const [first] = stateAt([[0, user("1")]]).turns;
    const turns = Array.from({ length: 200_000 }, () => first as NonNullable<typeof first>);
    expect(computeAnalytics({ ...stateAt([]), turns, turnCount: turns.length }).totalTurns).toBe(200_000);
  });

  test("refuse a state that was read without its turns", () => {
    const state = { ...stateAt([[0, user("1")]]), turns: [] };
    expect(() => computeAnalytics(state)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });

  test("cannot be changed", () => {
    const analytics = computeAnalytics(stateAt([[0, answer("acme", "one", ["read"])]]));
    for (const value of [analytics, analytics.agentsUsed, analytics.modelsUsed, analytics.toolsInvoked]) {
      expect(Object.isFrozen(value)).toBe(true);
    }
  });
});

function stateAt(said: readonly (readonly [second: number, message: Message])[]): SessionState {
  const log = new SampleLog();
  log.append(said.map(([second, message]) => ({ type: "message", message, timestamp: timeAt(second) })));
  return stateOf(
    log.head,
    log.settings(),
    log.entries.map((entry) => turnOf(entry as EntryOf<"message">)),
    { checkpointId: null },
  );
}
