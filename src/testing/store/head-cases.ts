import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { FIRST_MESSAGE_CHARACTERS_MAX } from "../../session/limits.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { headOf, make } from "./store-checks.ts";
import { assistant, compaction, leaf, name, spending, status, user, variables } from "./drafts.ts";
import { appendAtRandom } from "./random-appends.ts";

/** Cases: the head. */
export const headCases: readonly StoreCase[] = [
  ...[1, 2, 3].map(
    (seed): StoreCase => ({
      name: `the head equals the fold of the entries after a long random sequence (seed ${seed})`,
      async run({ store }) {
        await make(store, "a");
        await appendAtRandom(store, "a", { seed, appends: 120 });
        await checkHeadIsFold(store, "a");
      },
    }),
  ),
  {
    name: "counts messages, tokens and cost of the path and of the whole session separately",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [
        user("hello", { id: "1" }),
        spending(10, { id: "2" }),
        leaf("1"),
        spending(100, { id: "3" }),
      ]);
      const { messageCount, usage, cost, path } = await headOf(store, "a");
      assert.deepEqual([messageCount, usage.totalTokens, cost], [3, 220, 1.1]);
      assert.deepEqual([path.turnCount, path.usage.totalTokens, path.cost], [2, 200, 1]);
      await store.append("a", [leaf("2")]);
      assert.deepEqual((await headOf(store, "a")).path.usage, { inputTokens: 10, outputTokens: 10, totalTokens: 20 });
    },
  },
  {
    name: "finds the last setup of each agent on a path, among variables and other branches",
    async run({ store }) {
      await make(store, "a");
      const setup = (id: string, agent: string): EntryDraft => ({ type: "setup", id, agent, instructions: id });
      await store.append("a", [setup("one", "a"), variables({ k: 1 }), user("hi", { id: "1" }), setup("two", "b")]);
      await store.append("a", [variables({ k: 2 }), setup("three", "a"), user("there", { id: "2" })]);
      await store.append("a", [leaf("1"), setup("four", "b")]);
      const settings = async () => store.settings("a", (await headOf(store, "a")).path);
      assert.deepEqual((await settings()).setups, { a: "one", b: "four" });
      assert.deepEqual((await settings()).variables, { k: 1 });
      await store.append("a", [leaf("2")]);
      assert.deepEqual((await settings()).setups, { a: "three", b: "two" });
      assert.deepEqual((await settings()).variables, { k: 2 });
      await checkHeadIsFold(store, "a");
      await store.fork("a", createHeader({ id: "f" }), { at: "four" });
      assert.deepEqual((await store.settings("f", (await headOf(store, "f")).path)).setups, { a: "one", b: "four" });
    },
  },
  {
    name: "lets settings, variables, model, thinking level and compaction follow the leaf",
    async run({ store }) {
      await make(store, "a");
      const later: EntryDraft[] = [
        { type: "model_change", provider: "acme", modelId: "two" },
        { type: "thinking_level_change", thinkingLevel: "high" },
        variables({ kept: 2, added: "x" }, ["dropped"]),
        { type: "variables", set: {}, unset: [], systemPrompt: "be brief", activeTools: ["read"], activeSkills: ["s"] },
        compaction("1", { id: "c" }),
      ];
      await store.append("a", [variables({ kept: 1, dropped: 1 }), spending(1, { id: "1" }), ...later]);
      const settingsAfter = {
        variables: { kept: 2, added: "x" },
        systemPrompt: "be brief",
        activeTools: ["read"],
        activeSkills: ["s"],
        setups: {},
      };
      const { path: after } = await headOf(store, "a");
      assert.deepEqual(
        [after.model?.modelId, after.thinkingLevel, after.compactionId, after.depth],
        ["two", "high", "c", 7],
      );
      assert.deepEqual(await store.settings("a", after), settingsAfter);
      await store.append("a", [leaf("1")]);
      const { path: before } = await headOf(store, "a");
      assert.deepEqual(
        [before.model?.modelId, before.thinkingLevel, before.compactionId, before.depth],
        ["one", "off", null, 2],
      );
      assert.deepEqual(await store.settings("a", before), {
        variables: { kept: 1, dropped: 1 },
        systemPrompt: null,
        activeTools: [],
        activeSkills: [],
        setups: {},
      });
      await store.append("a", [leaf("c")]);
      assert.deepEqual((await headOf(store, "a")).path, after);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "keeps the latest name, status and status reason, whatever branch is active",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [
        user("1", { id: "1" }),
        name("first"),
        user("2"),
        { type: "status", status: "suspended", reason: "lunch" },
        leaf("1"),
      ]);
      const { name: title, status: state, statusReason } = await headOf(store, "a");
      assert.deepEqual([title, state, statusReason], ["first", "suspended", "lunch"]);
      await store.append("a", [name(""), status("active")]);
      assert.deepEqual([(await headOf(store, "a")).name, (await headOf(store, "a")).statusReason], [null, null]);
    },
  },
  {
    name: "keeps open runs, undone compactions and a graceful close",
    async run({ store }) {
      await make(store, "a");
      const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
      await store.append("a", [
        { type: "run", runId: "r1", phase: "started" },
        { type: "run", runId: "r2", phase: "started" },
        user("1", { id: "1" }),
        compaction("1", { id: "c" }),
        { type: "compaction_undone", targetId: "c" },
        { type: "run", runId: "r1", phase: "finished" },
        { type: "trailer", closedAt: "2024-01-01T00:00:00.000Z", entryCount: 6, usage },
      ]);
      const { openRuns, undone, closed } = await headOf(store, "a");
      assert.deepEqual(
        { openRuns, undone, closed },
        { openRuns: [{ runId: "r2", state: "started" }], undone: ["c"], closed: true },
      );
      await store.append("a", [user("on")]);
      assert.equal((await headOf(store, "a")).closed, false);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "keeps the beginning of the first user message as one line",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [assistant("I begin"), user(`  two\n lines ${"é".repeat(500)}`), user("second")]);
      const { firstMessage } = await headOf(store, "a");
      assert.ok(firstMessage?.startsWith("two lines éé"), firstMessage ?? "null");
      assert.ok((firstMessage?.length ?? 0) <= FIRST_MESSAGE_CHARACTERS_MAX);
    },
  },
  {
    name: "keeps the store's time of the last append, which a retry does not change",
    async run({ store }) {
      const created = await make(store, "a", { createdAt: "2001-01-01T00:00:00.000Z" });
      const { head } = await store.append("a", [user("one", { id: "1", timestamp: "2002-01-01T00:00:00.000Z" })]);
      assert.ok(
        head.updatedAt > "2010" && head.updatedAt >= created.updatedAt,
        `${head.updatedAt} is not the store's time`,
      );
      assert.equal((await store.append("a", [user("one", { id: "1" })])).head.updatedAt, head.updatedAt);
    },
  },
];
