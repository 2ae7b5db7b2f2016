import { expect } from "vitest";
import { BranchManager } from "../../src/lifecycle/merge/branch-manager.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { buildContext } from "../../src/session/context/context.ts";
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

const headOf = async (store: SessionStore, id: string): Promise<SessionHead> => (await store.head(id)) as SessionHead;
const idsOf = (drafts: readonly EntryDraft[]): (string | undefined)[] => drafts.map(({ id }) => id);
const present = (...ids: readonly string[]) => ids.map((turnId) => ({ turnId, reason: "present" }));

/** A session `s` with the turns one and two, and its branch `b`. */
async function forked(store: SessionStore): Promise<BranchManager> {
  await sessionOf(store, "s", "one", "two");
  const ids = ["b", "c", "d"];
  const branches = new BranchManager(store, { ids: () => ids.shift() as string });
  await branches.fork("s", "try");
  return branches;
}

onEveryStore("a merge", {
  async "appends the branch's new turns after the parent's last, however far it has moved on"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1", "b2");
    await say(store, "s", "three", "four");
    const { state, appended, skipped, conflicts } = await branches.merge("s", "b");
    expect(textsOf(state)).toEqual(["one", "two", "three", "four", "b1", "b2"]);
    expect([idsOf(appended), skipped, conflicts]).toEqual([["b1", "b2"], [], []]);
    expect(state.turns.at(-1)).toMatchObject({
      turnId: "b2",
      metadata: { mergedFrom: { sessionId: "b", branchName: "try", turnId: "b2" } },
    });
    expect((await headOf(store, "s")).leafId).toBe("b2");
    expect((await branches.merge("s", "b", { turns: false })).state).toMatchObject({ turns: [], turnCount: 6 });
  },

  async "is idempotent, and appends the rest of a branch that has continued"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    await store.append("b", [set("v1", { k: 1 })]);
    await branches.merge("s", "b");
    const before = await contentsOf(store);
    const again = await branches.merge("s", "b");
    expect([again.appended, again.skipped, again.conflicts]).toEqual([[], present("b1"), []]);
    expect(await contentsOf(store)).toEqual(before);
    await say(store, "s", "three");
    await say(store, "b", "b2");
    const { state, appended, skipped } = await branches.merge("s", "b");
    expect([idsOf(appended), skipped]).toEqual([["b2"], present("b1")]);
    expect(textsOf(state)).toEqual(["one", "two", "b1", "three", "b2"]);
  },

  async "is based on the fork position and not on the clock"(store) {
    const timestamp = "2024-01-01T00:00:00.000Z";
    const at = (id: string): EntryDraft => ({ ...message(id, { role: "user", content: id }), timestamp });
    await sessionOf(store, "s");
    await store.append("s", [at("one"), at("two")]);
    const branches = new BranchManager(store, { ids: () => "b", clock: () => new Date(timestamp) });
    await branches.fork("s", "try", { at: "one" });
    await store.append("b", [at("b1")]);
    await store.append("s", [at("three")]);
    await store.append("b", [{ ...at("b2"), timestamp: "1999-01-01T00:00:00.000Z" }]);
    const { state } = await branches.merge("s", "b");
    expect(textsOf(state)).toEqual(["one", "two", "three", "b1", "b2"]);
    expect(state.turns.slice(-2).map((turn) => turn.timestamp)).toEqual([timestamp, "1999-01-01T00:00:00.000Z"]);
  },

  async "of a branch of a branch works into its parent and its grandparent, in any order"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    await branches.fork("b", "deeper");
    await say(store, "b", "b2");
    await say(store, "c", "c1");
    const first = await branches.merge("s", "c");
    expect(textsOf(first.state)).toEqual(["one", "two", "b1", "c1"]);
    expect(first.state.turns.slice(2).map(({ metadata }) => metadata.mergedFrom)).toEqual([
      { sessionId: "b", branchName: "try", turnId: "b1" },
      { sessionId: "c", branchName: "deeper", turnId: "c1" },
    ]);
    expect(textsOf((await branches.merge("b", "c")).state)).toEqual(["one", "two", "b1", "b2", "c1"]);
    const last = await branches.merge("s", "b");
    expect([idsOf(last.appended), last.skipped]).toEqual([["b2"], present("b1", "c1")]);
    expect(textsOf(last.state)).toEqual(["one", "two", "b1", "c1", "b2"]);
  },

  async "of a turn that was merged before keeps its first origin"(store) {
    const branches = await forked(store);
    await branches.fork("b", "deeper");
    await say(store, "c", "c1");
    await branches.merge("b", "c");
    const { state } = await branches.merge("s", "b");
    expect(state.turns.at(-1)?.metadata.mergedFrom).toEqual({ sessionId: "c", branchName: "deeper", turnId: "c1" });
    expect((await branches.merge("s", "c")).appended).toEqual([]);
  },

  async "of a branch that was forked at an inherited entry appends only its own entries"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    await branches.fork("b", "early", { at: "one" });
    await say(store, "c", "c1");
    expect(textsOf((await branches.merge("s", "c")).state)).toEqual(["one", "two", "c1"]);
    expect(textsOf((await branches.merge("b", "c")).state)).toEqual(["one", "two", "b1", "c1"]);
  },

  async "takes the branch's active path, not its other branches"(store) {
    const branches = await forked(store);
    await say(store, "b", "dead end");
    await store.append("b", [{ type: "leaf", targetId: "one" }]);
    await say(store, "b", "b1");
    expect(textsOf((await branches.merge("s", "b")).state)).toEqual(["one", "two", "b1"]);
  },

  async "takes over the edits of the turns that it merges, and no other"(store) {
    const branches = await forked(store);
    await say(store, "s", "b1");
    const edit = (id: string, targetId: string, content: string | null): EntryDraft => {
      const replacement = content === null ? null : ({ role: "user", content } as const);
      return { type: "context_edit", id, targetId, message: replacement };
    };
    // The turn gets another id in the parent, which has that id already.
    await store.append("b", [message("b1", { role: "user", content: "long" })]);
    await store.append("b", [
      edit("e1", "b1", "short"),
      edit("e2", "one", null),
      { type: "context_edit", id: "e3", undo: "e2" },
    ]);
    const first = await branches.merge("s", "b");
    expect(first.appended).toMatchObject([{ id: "b/b1" }, { id: "e1", targetId: "b/b1" }]);
    await say(store, "b", "b2");
    await store.append("b", [edit("e4", "b2", null), { type: "context_edit", id: "e5", undo: "e1" }]);
    expect(idsOf((await branches.merge("s", "b", { dryRun: true })).appended)).toEqual(["b2", "e4", "e5"]);
    await branches.merge("s", "b");
    expect((await branches.merge("s", "b")).appended).toEqual([]);
    const contents = buildContext(await entriesOf(store, "s")).messages.map(({ content }) => content);
    expect(contents).toEqual(["one", "two", "b1", "long"]);
  },

  async "keeps different turns with the same id apart"(store) {
    const branches = await forked(store);
    await store.append("s", [message("x", { role: "user", content: "the parent's" })]);
    await store.append("b", [message("x", { role: "user", content: "the branch's" })]);
    const { state } = await branches.merge("s", "b");
    expect(textsOf(state)).toEqual(["one", "two", "the parent's", "the branch's"]);
    expect((await branches.merge("s", "b")).appended).toEqual([]);
    expect(textsOf((await branches.merge("s", "b")).state)).toHaveLength(4);
  },

  async "recognizes a turn that both sides have"(store) {
    const branches = await forked(store);
    await say(store, "s", "same");
    await say(store, "b", "same", "b1");
    const { state, skipped } = await branches.merge("s", "b");
    expect(textsOf(state)).toEqual(["one", "two", "same", "b1"]);
    expect(skipped).toEqual(present("same"));
  },

  async "sets the variables that the branch changed, and reports conflicts"(store) {
    await sessionOf(store, "s", "one");
    await store.append("s", [set("v0", { kept: 0, mine: 0, theirs: 0, both: 0, alike: 0, gone: 0 })]);
    const branches = new BranchManager(store, { ids: () => "b" });
    await branches.fork("s", "try");
    await store.append("s", [set("v1", { mine: 1, both: 1, alike: 5, gone: 1, constructor: 7 })]);
    await store.append("b", [set("v2", { theirs: 2, both: 2, alike: 5, constructor: 3 }, ["gone"])]);
    const { state, conflicts } = await branches.merge("s", "b");
    expect(state.variables).toEqual({ kept: 0, mine: 1, theirs: 2, both: 2, alike: 5, constructor: 3 });
    expect(conflicts).toEqual([
      { key: "both", parent: 1, branch: 2, base: 0 },
      { key: "constructor", parent: 7, branch: 3, base: undefined },
      { key: "gone", parent: 1, branch: undefined, base: 0 },
    ]);
  },

  async "uses the last merge as the base of a variable"(store) {
    const branches = await forked(store);
    await store.append("b", [set("v1", { k: 1 })]);
    await branches.merge("s", "b");
    await store.append("s", [set("w", { k: 9 })]);
    const again = await branches.merge("s", "b");
    expect([again.state.variables, again.conflicts]).toEqual([{ k: 9 }, []]);
    await store.append("b", [set("v2", { k: 2 })]);
    const last = await branches.merge("s", "b");
    expect([last.state.variables, last.conflicts]).toEqual([{ k: 2 }, [{ key: "k", parent: 9, branch: 2, base: 1 }]]);
    await store.append("b", [set("v3", { k: 3 })]);
    expect((await branches.merge("s", "b")).conflicts).toEqual([]);
  },

  async "does not merge prompt, tools, model and compactions of the branch"(store) {
    const branches = await forked(store);
    await store.append("s", [
      { type: "variables", set: {}, unset: [], systemPrompt: "the parent's", activeTools: ["a"] },
    ]);
    await store.append("b", [
      { type: "variables", id: "p", set: { k: 1 }, unset: [], systemPrompt: "the branch's", activeTools: [] },
      { type: "model_change", provider: "x", modelId: "y" },
      { type: "custom_message", id: "note", customType: "note", content: "noted", display: true },
      { type: "custom", customType: "state", data: 1 },
      { type: "compaction", summary: "all of it", firstKeptEntryId: "note", tokensBefore: 9 },
    ]);
    await say(store, "b", "b1");
    const { state, appended } = await branches.merge("s", "b");
    expect(idsOf(appended)).toEqual(["p", "note", "b1"]);
    expect(state).toMatchObject({ systemPrompt: "the parent's", activeTools: ["a"], variables: { k: 1 } });
    const { messages } = buildContext(await entriesOf(store, "s"));
    expect(messages.map(({ content }) => content)).toEqual(["one", "two", "noted", "b1"]);
  },

  async "increases the totals exactly by the appended turns"(store) {
    const branches = await forked(store);
    await store.append("s", [spending("three", 3)]);
    await store.append("b", [spending("b1", 10), spending("b2", 20)]);
    const before = await headOf(store, "s");
    const { state } = await branches.merge("s", "b");
    await branches.merge("s", "b");
    const after = await headOf(store, "s");
    expect([state.turnCount, state.totalTokens, state.totalCost]).toEqual([5, 33, 0.33]);
    expect([state.spent.totalTokens, after.messageCount - before.messageCount]).toEqual([33, 2]);
    expect(after.version - before.version).toBe(2);
  },

  async "keeps tool calls with their results"(store) {
    const branches = await forked(store);
    const toolCalls = [
      { id: "c1", name: "look", arguments: "{}" },
      { id: "c2", name: "look", arguments: "{}" },
    ];
    await store.append("b", [
      message("call", { role: "assistant", content: null, toolCalls, providerData: { blocks: [1] } }),
      message("r1", { role: "tool", toolCallId: "c1", name: "look", content: "first" }),
      message("r2", { role: "tool", toolCallId: "c2", name: "look", content: "second" }),
    ]);
    await say(store, "s", "meanwhile");
    await branches.merge("s", "b");
    const { messages } = buildContext(await entriesOf(store, "s"));
    expect(messages.slice(3)).toMatchObject([
      { role: "assistant", toolCalls, providerData: { blocks: [1] } },
      { role: "tool", toolCallId: "c1", content: "first" },
      { role: "tool", toolCallId: "c2", content: "second" },
    ]);
  },

  async "previews the result as a dry run and writes nothing"(store) {
    const branches = await forked(store);
    await store.append("b", [spending("b1", 5), set("v", { k: 1 })]);
    await store.append("s", [set("w", { k: 2 })]);
    const before = await contentsOf(store);
    const preview = await branches.merge("s", "b", { dryRun: true });
    expect(await contentsOf(store)).toEqual(before);
    const real = await branches.merge("s", "b");
    expect({ ...preview, state: { ...preview.state, updatedAt: "" } }).toEqual({
      ...real,
      state: { ...real.state, updatedAt: "" },
    });
    expect(preview.conflicts).toHaveLength(1);
    expect((await branches.merge("s", "b", { dryRun: true, turns: false })).state.turns).toEqual([]);
  },

  async "is refused for invalid arguments, with nothing written"(store) {
    const branches = await forked(store);
    await say(store, "b", "b1");
    await sessionOf(store, "stranger", "one");
    await branches.fork("s", "theirs", { userId: "bob" });
    await refuses(store, () => branches.merge("s", "s"), "INVALID_OPTION");
    await refuses(store, () => branches.merge("nowhere", "b"), "SESSION_NOT_FOUND");
    await refuses(store, () => branches.merge("s", "nowhere"), "SESSION_NOT_FOUND");
    await refuses(store, () => branches.merge("s", "c"), "SESSION_NOT_FOUND");
    await refuses(store, () => branches.merge("s", "stranger"), "LINEAGE");
    await refuses(store, () => branches.merge("b", "s"), "LINEAGE");
    for (const strategy of ["append", null, {}, 7]) {
      await refuses(store, () => branches.merge("s", "b", { strategy: strategy as never }), "INVALID_OPTION");
    }
    await refuses(store, () => branches.merge("s", "b", { maxTurns: 2 }), "CAPACITY");
    await refuses(store, () => branches.merge("s", "b", { maxTurns: 2, dryRun: true }), "CAPACITY");
    await refuses(store, () => branches.merge("s", "b", { maxTurns: -1 }), "INVALID_OPTION");
    for (const [status, code] of [
      ["suspended", "SESSION_SUSPENDED"],
      ["closed", "SESSION_CLOSED"],
      ["expired", "SESSION_EXPIRED"],
    ] as const) {
      await store.append("s", [{ type: "status", status }]);
      await refuses(store, () => branches.merge("s", "b"), code);
      await refuses(store, () => branches.merge("s", "b", { dryRun: true }), code);
    }
  },

  async "accepts a closed branch, and fails if a branch on the way is deleted"(store) {
    const branches = await forked(store);
    await branches.fork("b", "deeper");
    await say(store, "c", "c1");
    await store.append("c", [{ type: "status", status: "closed" }]);
    await store.delete("b");
    await refuses(store, () => branches.merge("s", "c"), "LINEAGE");
    await store.undelete("b");
    expect(textsOf((await branches.merge("s", "c")).state)).toEqual(["one", "two", "c1"]);
  },

  async "of branches that are merged and forked concurrently loses and duplicates no turn"(store) {
    await sessionOf(store, "s", "one");
    const branches = new BranchManager(store, { maxPerSession: 100 });
    const names = Array.from({ length: 20 }, (_, i) => `b${i}`);
    const forks = await Promise.all(names.map((name) => branches.fork("s", name)));
    await Promise.all(
      forks.map(async ({ sessionId }, i) => {
        await say(store, sessionId, `${i}.1`, `${i}.2`);
        await store.append(sessionId, [set(`${i}.v`, { [`k${i}`]: i })]);
      }),
    );
    const results = await Promise.all([
      ...forks.map(({ sessionId }) => branches.merge("s", sessionId)),
      ...forks.map(({ sessionId }) => branches.merge("s", sessionId)),
      ...names.map((name) => branches.fork("s", `again ${name}`)),
      ...names.map((_, i) => say(store, "s", `own ${i}`)),
    ]);
    const { state } = await branches.merge("s", forks[0]?.sessionId as string);
    const turns = textsOf(state);
    expect(turns).toHaveLength(1 + 40 + 20);
    expect(new Set(turns).size).toBe(turns.length);
    for (let i = 0; i < 20; i++) expect(turns.indexOf(`${i}.2`)).toBe(turns.indexOf(`${i}.1`) + 1);
    expect(state.variables).toEqual(Object.fromEntries(names.map((_, i) => [`k${i}`, i])));
    const merges = results.slice(0, 40) as Awaited<ReturnType<BranchManager["merge"]>>[];
    expect(merges.flatMap(({ appended }) => appended)).toHaveLength(60);
    expect(await headOf(store, "s")).toMatchObject({ version: 81, messageCount: 61 });
  },
});
