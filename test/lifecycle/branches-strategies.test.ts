import { expect, test } from "vitest";
import { BranchManager } from "../../src/lifecycle/merge/branch-manager.ts";
import type { MergeStrategy } from "../../src/lifecycle/merge/merge-strategy.ts";
import { SelectiveMerge } from "../../src/lifecycle/merge/selective-merge.ts";
import { SummaryMerge } from "../../src/lifecycle/merge/summary-merge.ts";
import { scripted } from "../../src/models/scripted.ts";
import { buildContext } from "../../src/session/context/context.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionState, SessionTurn } from "../../src/session/state/state.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import {
  contentsOf,
  entriesOf,
  message,
  onEveryStore,
  refuses,
  say,
  sessionOf,
  set,
  spending,
  textsOf,
} from "./branches-sample.ts";

const idsOf = (drafts: readonly EntryDraft[]): (string | undefined)[] => drafts.map(({ id }) => id);

async function forked(store: SessionStore): Promise<BranchManager> {
  await sessionOf(store, "s", "one", "two");
  const ids = ["b", "c"];
  const branches = new BranchManager(store, { ids: () => ids.shift() as string });
  await branches.fork("s", "try");
  return branches;
}

function callWith(id: string, ...callIds: readonly string[]): EntryDraft {
  const toolCalls = callIds.map((callId) => ({ id: callId, name: "look", arguments: "{}" }));
  return message(id, { role: "assistant", content: null, toolCalls });
}

function answerOf(id: string, toolCallId: string): EntryDraft {
  return message(id, { role: "tool", toolCallId, name: "look", content: id });
}

onEveryStore("an edit in a branch", {
  async "is merged with a selected turn, and left out with another"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2");
    for (const id of ["b1", "b2"])
      await store.append("b", [{ type: "context_edit", id: `edit-${id}`, targetId: id, message: null }]);
    const { appended } = await branches.merge("s", "b", { strategy: new SelectiveMerge(["b2"]) });
    expect(idsOf(appended)).toEqual(["b2", "edit-b2"]);
  },

  async "decides what a summary is written of"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2", "b3");
    await store.append("b", [
      { type: "context_edit", targetId: "b1", message: null },
      { type: "context_edit", targetId: "b2", message: { role: "user", content: "short" } },
    ]);
    const summarize = (turns: readonly SessionTurn[]): string => turns.map(({ content }) => content).join(", ");
    await branches.merge("s", "b", { strategy: new SummaryMerge({ summarize }) });
    expect((await entriesOf(store, "s")).at(-1)).toMatchObject({ type: "branch_summary", summary: "short, b3" });
  },
});

onEveryStore("a selective merge", {
  async "appends only the named turns, in the branch's order, and no variables"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2", "b3");
    await store.append("b", [set("v", { k: 1 })]);
    await say(store, "s", "three");
    const strategy = new SelectiveMerge(["b3", "nowhere", "b1", "one", "b3"]);
    const { state, appended, skipped, conflicts } = await branches.merge("s", "b", { strategy });
    expect(textsOf(state)).toEqual(["one", "two", "three", "b1", "b3"]);
    expect([idsOf(appended), state.variables, conflicts]).toEqual([["b1", "b3"], {}, []]);
    expect(skipped).toEqual([
      { turnId: "nowhere", reason: "unknown" },
      { turnId: "one", reason: "present" },
    ]);
    const again = await branches.merge("s", "b", { strategy: new SelectiveMerge(["b1", "b2"]) });
    expect([idsOf(again.appended), again.skipped]).toEqual([["b2"], [{ turnId: "b1", reason: "present" }]]);
    expect((await branches.merge("s", "b")).appended.map(({ type }) => type)).toEqual(["variables"]);
  },

  async "never separates a call from its results"(store) {
    const branches = await forked(store);
    await store.append("b", [
      callWith("calls", "c1", "c2"),
      answerOf("r1", "c1"),
      answerOf("r2", "c2"),
      callWith("again", "c1"),
      answerOf("r3", "c1"),
      callWith("open", "c9"),
    ]);
    const half = new SelectiveMerge(["calls", "r1", "r3", "open"]);
    const first = await branches.merge("s", "b", { strategy: half });
    expect(idsOf(first.appended)).toEqual(["open"]);
    expect(first.skipped).toEqual([
      { turnId: "calls", reason: "torn" },
      { turnId: "r1", reason: "torn" },
      { turnId: "r3", reason: "torn" },
    ]);
    const whole = new SelectiveMerge(["r2", "r1", "calls"]);
    expect(idsOf((await branches.merge("s", "b", { strategy: whole })).appended)).toEqual(["calls", "r1", "r2"]);
    const { messages } = buildContext(await entriesOf(store, "s"));
    expect(messages.map(({ role }) => role).slice(-3)).toEqual(["assistant", "tool", "tool"]);
  },
});

onEveryStore("a summary merge", {
  async "appends one summary with its cost instead of the turns, and the variables"(store) {
    const branches = await forked(store);
    await store.append("b", [spending("b1", 50), set("v", { k: 1 })]);
    const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
    const reply = { role: "assistant", content: "They tried it.", usage, cost: 0.5, stopReason: "stop" } as const;
    const model = scripted([reply]);
    const strategy = new SummaryMerge({ model, instructions: "Name the files." });
    const { state, appended } = await branches.merge("s", "b", { strategy });
    expect(appended).toMatchObject([
      {
        type: "branch_summary",
        summary: "They tried it.",
        details: { mergedFrom: { sessionId: "b", branchName: "try" } },
        usage,
        cost: 0.5,
      },
      { type: "variables", set: { k: 1 } },
    ]);
    expect(textsOf(state)).toEqual(["one", "two"]);
    expect([state.totalTokens, state.spent.totalTokens, state.variables]).toEqual([0, 7, { k: 1 }]);
    const asked = JSON.stringify(model.requests);
    expect(asked).toContain("b1");
    expect(asked).toContain("Name the files.");
    expect(asked).not.toContain("[user] one");
    const { messages } = buildContext(await entriesOf(store, "s"));
    expect(messages.at(-1)?.content).toContain("They tried it.");
  },

  async "is idempotent; a branch that has continued gets a summary of the rest"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    const told: string[][] = [];
    const strategy = new SummaryMerge({
      summarize: (turns) => `about ${told[told.push(turns.map(({ turnId }) => turnId)) - 1]}`,
    });
    await branches.merge("s", "b", { strategy });
    const before = await contentsOf(store);
    const again = await branches.merge("s", "b", { strategy });
    expect([again.appended, again.skipped]).toEqual([[], [{ turnId: "b1", reason: "present" }]]);
    expect(await contentsOf(store)).toEqual(before);
    await say(store, "b", "b2");
    await branches.merge("s", "b", { strategy });
    await branches.merge("s", "b");
    await say(store, "b", "b3");
    await branches.merge("s", "b", { strategy });
    expect(told).toEqual([["b1"], ["b2"], ["b3"]]);
    const summaries = (await entriesOf(store, "s")).flatMap((entry) =>
      entry.type === "branch_summary" ? [entry.summary] : [],
    );
    expect(summaries).toEqual(["about b1", "about b2", "about b3"]);
  },

  async "leaves one summary if it runs twice concurrently"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    let asked = 0;
    const strategy = new SummaryMerge({ summarize: async () => `summary ${++asked}` });
    const results = await Promise.all(Array.from({ length: 5 }, () => branches.merge("s", "b", { strategy })));
    expect(results.flatMap(({ appended }) => appended)).toHaveLength(1);
    expect((await entriesOf(store, "s")).filter(({ type }) => type === "branch_summary")).toHaveLength(1);
  },

  async "of a branch's branch is merged on with the branch, and not written again"(store) {
    const branches = await forked(store);
    await branches.fork("b", "deeper");
    await say(store, "c", "c1");
    let asked = 0;
    const strategy = new SummaryMerge({ summarize: () => `summary ${++asked}` });
    await branches.merge("b", "c", { strategy });
    expect((await branches.merge("s", "b")).appended).toMatchObject([{ type: "branch_summary", summary: "summary 1" }]);
    expect((await branches.merge("s", "c", { strategy })).appended).toEqual([]);
    expect(asked).toBe(1);
  },

  async "without content writes nothing"(store) {
    const branches = await forked(store);
    const never = new SummaryMerge({ summarize: () => Promise.reject(new Error("not to be asked")) });
    expect((await branches.merge("s", "b", { strategy: never })).appended).toEqual([]);
    await say(store, "b", "b0");
    await branches.merge("s", "b");
    expect((await branches.merge("s", "b", { strategy: never })).appended).toEqual([]);
    await say(store, "b", "b1");
    for (const summarize of [() => "  ", () => undefined as unknown as string]) {
      const strategy = new SummaryMerge({ summarize });
      await refuses(store, () => branches.merge("s", "b", { strategy }), "SUMMARY_FAILED");
    }
    const cut = { role: "assistant", content: "They", stopReason: "length" } as const;
    const strategy = new SummaryMerge({ model: scripted([cut]) });
    await refuses(store, () => branches.merge("s", "b", { strategy }), "SUMMARY_FAILED");
  },
});

onEveryStore("a strategy of one's own", {
  async "gets both states and the new turns, and appends its own choice of turns and variables"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2");
    await store.append("s", [set("w", { count: 1, old: true as never })]);
    const seen: unknown[] = [];
    const strategy: MergeStrategy = {
      merge(parent, branch, { newTurns }) {
        seen.push(textsOf(parent), textsOf(branch), textsOf({ turns: newTurns }));
        const verdict = { role: "assistant", content: "Two things came of it.", tokensUsed: 4 } as const;
        return { turns: [newTurns[1] as SessionTurn, verdict], variables: { count: 2 }, unset: ["old"] };
      },
    };
    const { state, conflicts } = await branches.merge("s", "b", { strategy });
    expect(seen).toEqual([
      ["one", "two"],
      ["one", "two", "b1", "b2"],
      ["b1", "b2"],
    ]);
    expect(textsOf(state)).toEqual(["one", "two", "b2", "Two things came of it."]);
    expect(state).toMatchObject({ variables: { count: 2 }, totalTokens: 4 });
    expect(state.turns.at(-1)?.metadata).toEqual({ mergedFrom: { sessionId: "b", branchName: "try" } });
    expect(conflicts).toEqual([]);
    const before = await contentsOf(store);
    expect((await branches.merge("s", "b", { strategy })).appended).toEqual([]);
    expect(await contentsOf(store)).toEqual(before);
  },

  async "with a counter counts once for each version of the branch"(store) {
    const branches = await forked(store);
    const strategy: MergeStrategy = {
      merge: (parent) => ({ variables: { merges: Number(parent.variables.merges ?? 0) + 1 } }),
    };
    await branches.merge("s", "b", { strategy });
    expect((await branches.merge("s", "b", { strategy })).state.variables).toEqual({ merges: 1 });
    await say(store, "b", "b1");
    expect((await branches.merge("s", "b", { strategy })).state.variables).toEqual({ merges: 2 });
  },

  async "may return a whole state, whose difference is appended"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2");
    await store.append("b", [set("v", { k: 1 })]);
    await store.append("s", [set("w", { gone: 1 })]);
    const strategy: MergeStrategy = {
      merge: (parent, branch, { newTurns }) => ({
        ...parent,
        turns: [...parent.turns, newTurns[1] as SessionTurn],
        variables: branch.variables,
        turnCount: 99,
        systemPrompt: "Be brief.",
        activeSkills: ["write"],
        name: "merged",
      }),
    };
    const { state } = await branches.merge("s", "b", { strategy });
    expect(textsOf(state)).toEqual(["one", "two", "b2"]);
    expect(state).toMatchObject({ variables: { k: 1 }, turnCount: 3, name: "merged" });
    expect(state).toMatchObject({ systemPrompt: "Be brief.", activeSkills: ["write"], activeTools: [] });
    expect(state.turns[2]?.metadata).toMatchObject({ mergedFrom: { sessionId: "b", turnId: "b2" } });
    const unchanged: MergeStrategy = { merge: (parent) => parent };
    expect((await branches.merge("s", "b", { strategy: unchanged })).appended).toEqual([]);
  },
});

const refusedAnswers: Readonly<Record<string, (parent: SessionState, branch: SessionState) => unknown>> = {
  nothing: () => undefined,
  "a text": () => "done",
  "a list": () => [],
  "turns that are not a list": () => ({ turns: "all" }),
  "a state of another session": (_, branch) => branch,
  "fewer turns": (parent) => ({ ...parent, turns: parent.turns.slice(1) }),
  "a changed turn": (parent) => ({
    ...parent,
    turns: parent.turns.map((turn) => ({ ...turn, content: "something else" })),
  }),
  "another status": (parent) => ({ ...parent, status: "closed" }),
  "another user": (parent) => ({ ...parent, userId: "bob" }),
  "other metadata": (parent) => ({ ...parent, metadata: {} }),
  "an entry of a type that cannot be merged": () => ({ entries: [{ type: "status", status: "closed" }] }),
};

test.for(Object.entries(refusedAnswers))(
  "a strategy that returns %s is refused, and nothing is written",
  async ([, answer]) => {
    const store = await openMemoryStore();
    const branches = await forked(store);
    await say(store, "b", "b1");
    const strategy = { merge: answer } as unknown as MergeStrategy;
    await refuses(store, () => branches.merge("s", "b", { strategy }), "INVALID_VALUE");
  },
);

test("a strategy that throws, or returns an invalid turn or value, writes nothing", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  await say(store, "b", "b1");
  const before = await contentsOf(store);
  const failing: MergeStrategy = { merge: () => Promise.reject(new Error("no idea")) };
  await expect(branches.merge("s", "b", { strategy: failing })).rejects.toThrow("no idea");
  expect(await contentsOf(store)).toEqual(before);
  const turn = { role: "robot", content: "beep" } as unknown as SessionTurn;
  const foreign: MergeStrategy = { merge: (_p, _b, { newTurns }) => ({ turns: [...newTurns, turn] }) };
  await refuses(store, () => branches.merge("s", "b", { strategy: foreign }), "INVALID_ENTRY");
  const variables = JSON.parse('{"__proto__":1}');
  const value: MergeStrategy = { merge: (_p, _b, { newTurns }) => ({ turns: newTurns, variables }) };
  await refuses(store, () => branches.merge("s", "b", { strategy: value }), "INVALID_VALUE");
});

test("a strategy is not called for a parent that accepts no turns, and a parent that is closed in the meantime gets none", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  await say(store, "b", "b1");
  let asked = 0;
  const closing: MergeStrategy = {
    async merge(_parent, _branch, { newTurns }) {
      asked += 1;
      await store.append("s", [{ type: "status", status: "closed" }]);
      return { turns: newTurns };
    },
  };
  for (let i = 0; i < 2; i++) {
    await expect(branches.merge("s", "b", { strategy: closing })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  }
  expect([asked, (await store.head("s"))?.messageCount]).toEqual([1, 2]);
});

test("a merge that loses a race finds the entries of the other process", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  await say(store, "b", "b1");
  const summing = (text: string): SummaryMerge => new SummaryMerge({ summarize: () => text });
  let ahead = false;
  const elsewhere: SessionStore = Object.create(store, {
    append: {
      value: async (...args: Parameters<SessionStore["append"]>) => {
        if (!ahead) await branches.merge("s", "b", { strategy: summing("the other's") });
        ahead = true;
        return store.append(...args);
      },
    },
  });
  for (const method of ["head", "getEntry", "path", "settings", "listCheckpoints", "read"] as const) {
    Object.defineProperty(elsewhere, method, { value: store[method].bind(store) });
  }
  const late = await new BranchManager(elsewhere).merge("s", "b", { strategy: summing("mine") });
  expect([late.appended, late.skipped]).toEqual([[], [{ turnId: "b/summary-0", reason: "present" }]]);
  expect((await entriesOf(store, "s")).at(-1)).toMatchObject({ summary: "the other's" });
});

test("an unchanged turn keeps fields that only its entry has", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  await store.append("b", [message("b1", { role: "assistant", content: "b1", providerData: { blocks: [1] } })]);
  const passing: MergeStrategy = { merge: (_parent, _branch, { newTurns }) => ({ turns: newTurns }) };
  expect((await branches.merge("s", "b", { strategy: passing })).appended).toMatchObject([
    { id: "b1", message: { providerData: { blocks: [1] } } },
  ]);
});

test("two strategies that merge the same branch are both applied", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  const say1: MergeStrategy = { name: "first", merge: () => ({ variables: { a: 1 } }) };
  const say2: MergeStrategy = { name: "second", merge: () => ({ variables: { b: 2 } }) };
  await branches.merge("s", "b", { strategy: say1 });
  expect((await branches.merge("s", "b", { strategy: say2 })).state.variables).toEqual({ a: 1, b: 2 });
});

test("a turn that a strategy edits is merged as edited, and counts as merged", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  await say(store, "b", "b1");
  const strategy: MergeStrategy = {
    merge: (_parent, _branch, { newTurns }) => ({ turns: newTurns.map((turn) => ({ ...turn, content: "shorter" })) }),
  };
  expect(textsOf((await branches.merge("s", "b", { strategy })).state)).toEqual(["one", "two", "shorter"]);
  const { appended, skipped } = await branches.merge("s", "b");
  expect([appended, skipped]).toEqual([[], [{ turnId: "b1", reason: "present" }]]);
});

test("a merge of more entries than the limit of an append still is one append", async () => {
  const store = await openMemoryStore();
  const branches = await forked(store);
  const ids = Array.from({ length: 10_001 }, (_, i) => `b${i}`);
  await say(store, "b", ...ids.slice(0, 9000));
  await say(store, "b", ...ids.slice(9000));
  const { state, appended } = await branches.merge("s", "b", { turns: false });
  expect([appended.length, state.turnCount]).toEqual([10_001, 10_003]);
});

test.for<[string, unknown]>([
  ["a selective merge of a text", "b1"],
  ["a selective merge of numbers", [1]],
])("refuses %s", ([, turnIds]) => {
  expect(() => new SelectiveMerge(turnIds as string[])).toThrowError(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

test.for<[string, unknown]>([
  ["nothing", undefined],
  ["neither a model nor a function", {}],
  ["both", { model: scripted([]), summarize: () => "" }],
])("refuses a summary merge of %s", ([, options]) => {
  expect(() => new SummaryMerge(options as never)).toThrowError(expect.objectContaining({ code: "INVALID_OPTION" }));
});
