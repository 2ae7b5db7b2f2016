import { describe, expect, test } from "vitest";
import { assistant, call, SampleLog, timeAt, usage, user } from "../../../test/sample-log.ts";
import type { Entry, EntryOf } from "../log/entry.ts";
import { EMPTY_PATH, emptyHead } from "../log/fold.ts";
import { createHeader } from "../log/header.ts";
import { type SessionState, type SessionTurn, stateOf, turnOf } from "./state.ts";
import { NO_SETTINGS } from "../log/settings.ts";
import { branchTo, indexEntries } from "../log/entry-tree.ts";

describe("a turn", () => {
  test("has role, content and time, with the entry's id", () => {
    const log = new SampleLog();
    log.say({ a: { role: "system", content: "be kind", metadata: { source: "admin" } }, b: user("hello") });
    expect(log.entries.map(turn)).toEqual([
      {
        turnId: "a",
        role: "system",
        content: "be kind",
        timestamp: timeAt(0),
        metadata: { source: "admin" },
        tokensUsed: 0,
        cost: 0,
      },
      { turnId: "b", role: "user", content: "hello", timestamp: timeAt(0), metadata: {}, tokensUsed: 0, cost: 0 },
    ]);
  });

  test("of a model has its calls, usage, cost and stop reason", () => {
    const log = new SampleLog().say({
      a: assistant(null, {
        toolCalls: [call("c", "look")],
        provider: "acme",
        model: "one",
        usage: usage(3, 4),
        cost: 0.5,
        stopReason: "tool_calls",
        agent: "finder",
      }),
      b: assistant("nothing is known of me"),
    });
    const [first, second] = log.entries.map(turn);
    expect(first).toEqual({
      turnId: "a",
      role: "assistant",
      content: null,
      timestamp: timeAt(0),
      metadata: {},
      agent: "finder",
      toolCalls: [call("c", "look")],
      provider: "acme",
      model: "one",
      usage: usage(3, 4),
      stopReason: "tool_calls",
      tokensUsed: 7,
      cost: 0.5,
    });
    expect(Object.keys(second ?? {}).sort()).toEqual([
      "content",
      "cost",
      "metadata",
      "role",
      "timestamp",
      "tokensUsed",
      "turnId",
    ]);
  });

  test("of a tool has the call and the tool, and whether it failed", () => {
    const log = new SampleLog().say({
      a: { role: "tool", toolCallId: "c", name: "look", content: [{ type: "text", text: "no" }], isError: true },
    });
    expect(turn(log.entries[0] as Entry)).toMatchObject({
      role: "tool",
      toolCallId: "c",
      toolName: "look",
      content: [{ type: "text", text: "no" }],
      isError: true,
    });
  });

  test("is immutable, also through the entry from which it was made", () => {
    const tags = ["x"];
    const part = { type: "text" as const, text: "first" };
    const entry: EntryOf<"message"> = {
      type: "message",
      id: "a",
      parentId: null,
      seq: 0,
      timestamp: timeAt(0),
      message: {
        role: "assistant",
        content: [part],
        metadata: { tags },
        toolCalls: [{ id: "c", name: "look", arguments: "{}" }],
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      },
    };
    const made = turnOf(entry);
    const before = structuredClone(made);
    part.text = "second";
    tags.push("y");
    expect(made).toEqual(before);
    expectFrozen(made);
    expect(Object.isFrozen(entry.message)).toBe(false);
  });
});

describe("a state", () => {
  test("of a session without entries is active and empty", () => {
    const log = new SampleLog({ userId: "u", metadata: { plan: "pro" } });
    expect(at(log)).toEqual({
      sessionId: "sample",
      userId: "u",
      status: "active",
      name: null,
      turns: [],
      turnCount: 0,
      metadata: { plan: "pro" },
      variables: {},
      systemPrompt: null,
      activeTools: [],
      activeSkills: [],
      createdAt: timeAt(0),
      updatedAt: timeAt(0),
      checkpointId: null,
      totalTokens: 0,
      totalCost: 0,
      spent: { totalTokens: 0, totalCost: 0 },
      parentSessionId: null,
      branchName: null,
      version: 0,
      leafId: null,
    });
  });

  test("follows the path to its leaf, while the spending counts every branch and summary", () => {
    const log = branchedLog();
    const state = at(log);
    expect(state.turns.map(({ turnId }) => turnId)).toEqual(["a", "c", "d"]);
    expect(state).toMatchObject({
      turnCount: 3,
      totalTokens: 50,
      totalCost: 0.5,
      spent: { totalTokens: 180, totalCost: 1.875 },
      variables: { kept: 1, added: 2 },
      systemPrompt: "be brief",
      activeTools: ["look"],
      activeSkills: ["law"],
      status: "suspended",
      name: "refund",
      leafId: "d",
      version: log.entries.length,
      updatedAt: log.head.updatedAt,
    });
  });

  test("at another leaf has that path's turns, totals and variables, and the session's own status and version", () => {
    const log = branchedLog();
    const state = at(log, "b");
    expect(state.turns.map(({ turnId }) => turnId)).toEqual(["a", "b"]);
    expect(state).toMatchObject({
      turnCount: 2,
      totalTokens: 100,
      totalCost: 1,
      variables: { kept: 1 },
      systemPrompt: null,
      status: "suspended",
      version: log.entries.length,
      leafId: "b",
    });
  });

  test("before the root is empty, and has the total spending", () => {
    const state = stateOf(branchedLog().head, NO_SETTINGS, [], { checkpointId: null, leafId: null });
    expect(state).toMatchObject({ turnCount: 0, totalTokens: 0, variables: {}, spent: { totalTokens: 180 } });
  });

  test("at a leaf without a given path is refused", () => {
    expect(() => stateOf(branchedLog().head, NO_SETTINGS, [], { checkpointId: null, leafId: "b" })).toThrow(TypeError);
  });

  test("keeps the turns that a compaction replaced in the context", () => {
    const log = new SampleLog().say({ a: user("1"), b: user("2") });
    log.append([{ type: "compaction", id: "c", summary: "s", firstKeptEntryId: "b", tokensBefore: 9 }]);
    log.say({ d: user("3") });
    expect(at(log).turns.map(({ turnId }) => turnId)).toEqual(["a", "b", "d"]);
    expect(at(log).turnCount).toBe(3);
  });

  test("without its turns still has their number", () => {
    const log = branchedLog();
    const { turns, ...rest } = stateOf(log.head, log.settings(), [], { checkpointId: "k" });
    const { turns: _, ...whole } = at(log);
    expect(turns).toEqual([]);
    expect(rest).toEqual({ ...whole, checkpointId: "k" });
  });

  test.for([
    {
      name: "a fork's source and branch name",
      init: { forkedFrom: { sessionId: "source", entryId: null, version: 0, branchName: "try" } },
      parentSessionId: "source",
      branchName: "try",
    },
    {
      name: "the first session it was derived from",
      init: { lineage: { parents: ["one", "two"], operator: "merge", kind: "op_merge" as const, extras: [] } },
      parentSessionId: "one",
      branchName: null,
    },
  ])("names $name as its parent", ({ init, parentSessionId, branchName }) => {
    const state = stateOf(emptyHead(createHeader(init)), NO_SETTINGS, [], { checkpointId: null });
    expect(state).toMatchObject({ parentSessionId, branchName });
  });

  test("is deeply frozen, and shares nothing mutable", () => {
    const log = branchedLog();
    const head = structuredClone(log.head);
    const settings = structuredClone(log.settings());
    const counts = [1];
    const metadata = { counts };
    const turns: SessionTurn[] = [
      { turnId: "a", role: "user", content: "1", timestamp: timeAt(0), metadata, tokensUsed: 0, cost: 0 },
    ];
    const state = stateOf(head, settings, turns, { checkpointId: null });
    const before = structuredClone(state);
    Object.assign(settings.variables, { kept: 9 });
    Object.assign(head.header.metadata, { more: 1 });
    (settings.activeTools as string[]).push("more");
    counts.push(2);
    turns.pop();
    expect(state).toEqual(before);
    expectFrozen(state);
  });
});

/** a → b is left for a → variables → c → compaction → d. */
function branchedLog(): SampleLog {
  const log = new SampleLog({ userId: "u", metadata: { plan: "pro" } });
  log.append([{ type: "variables", set: { kept: 1 }, unset: [] }]);
  log.say({ a: user("1"), b: assistant("2", { usage: usage(60, 40), cost: 1 }) });
  log.append([
    { type: "leaf", targetId: "a" },
    { type: "branch_summary", summary: "tried", fromId: "b", usage: usage(10), cost: 0.25 },
    {
      type: "variables",
      set: { added: 2 },
      unset: [],
      systemPrompt: "be brief",
      activeTools: ["look"],
      activeSkills: ["law"],
    },
  ]);
  log.say({ c: assistant("3", { usage: usage(25, 25), cost: 0.5 }) });
  log.append([
    {
      type: "compaction",
      summary: "s",
      firstKeptEntryId: "c",
      tokensBefore: 9,
      usage: usage(20),
      cost: 0.125,
    },
  ]);
  log.say({ d: user("4") });
  log.append([
    { type: "status", status: "suspended" },
    { type: "session_info", name: "refund" },
  ]);
  return log;
}

function at(log: SampleLog, leafId: string | null = log.head.leafId): SessionState {
  const path = leafId === null ? [] : branchTo(indexEntries(log.entries), leafId);
  const turns = path.filter((entry) => entry.type === "message").map(turn);
  const summary = (leafId === null ? null : log.pathOf(leafId)) ?? EMPTY_PATH;
  return stateOf(log.head, log.settings(summary), turns, { checkpointId: null, leafId, path: summary });
}

function turn(entry: Entry): SessionTurn {
  return turnOf(entry as EntryOf<"message">);
}

function expectFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const item of Object.values(value)) expectFrozen(item);
}
