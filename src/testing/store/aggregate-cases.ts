import assert from "node:assert/strict";
import { createHeader } from "../../session/log/header.ts";
import type { AggregateQuery, AggregateRow, SessionStore } from "../../session/store.ts";
import type { StoreCase } from "../store-case.ts";
import { make, refuses } from "./store-checks.ts";
import { assistant, compaction, leaf, name, status, user } from "./drafts.ts";

const MONDAY = "2024-01-01T10:00:00.000Z";
const MIDNIGHT = "2024-01-02T00:00:00.000Z";
const TUESDAY = "2024-01-02T10:00:00.000Z";

/** Cases: aggregates and their grouping. */
export const aggregateCases: readonly StoreCase[] = [
  {
    name: "aggregates the messages of all sessions: tool calls, tokens and cost",
    async run({ store }) {
      await makeThree(store);
      const usage = { inputTokens: 111, outputTokens: 222, totalTokens: 333, cacheReadTokens: 7 };
      assert.deepEqual(await sums(store, {}), [{ sessions: 3, messages: 7, toolCalls: 3, usage, cost: 3.5 }]);
    },
  },
  {
    name: "groups by day, by model, by user, and by several of them, and sorts by the keys",
    async run({ store }) {
      await makeThree(store);
      const brief = async (groupBy: AggregateQuery["groupBy"]): Promise<unknown[]> =>
        (await sums(store, { groupBy })).map(({ sessions, messages, toolCalls, usage, cost, ...keys }) => [
          keys,
          sessions,
          messages,
          usage.totalTokens,
          cost,
        ]);
      assert.deepEqual(await brief(["day"]), [
        [{ day: "2024-01-01" }, 3, 4, 33, 0.5],
        [{ day: "2024-01-02" }, 2, 3, 300, 3],
      ]);
      assert.deepEqual(await brief(["model"]), [
        [{ model: null }, 3, 4, 30, 0],
        [{ model: "acme/one" }, 1, 1, 3, 0.5],
        [{ model: "acme/two" }, 1, 2, 300, 3],
      ]);
      assert.deepEqual(await brief(["user"]), [
        [{ user: null }, 1, 2, 30, 0],
        [{ user: "u" }, 1, 2, 3, 0.5],
        [{ user: "v" }, 1, 3, 300, 3],
      ]);
      assert.deepEqual(await brief(["user", "day"]), [
        [{ user: null, day: "2024-01-01" }, 1, 1, 30, 0],
        [{ user: null, day: "2024-01-02" }, 1, 1, 0, 0],
        [{ user: "u", day: "2024-01-01" }, 1, 2, 3, 0.5],
        [{ user: "v", day: "2024-01-01" }, 1, 1, 0, 0],
        [{ user: "v", day: "2024-01-02" }, 1, 2, 300, 3],
      ]);
    },
  },
  {
    name: "groups by models whose names contain quotes, slashes, NUL and half of a surrogate pair",
    async run({ store }) {
      await make(store, "s");
      const models = ['a"b\\', "a/b", "nul\0", "half\ud800", "\udc00half", "whole\ud83d\ude00"];
      for (const model of models) await store.append("s", [assistant("yes", { provider: "acme", model })]);
      const rows = await sums(store, { groupBy: ["model"] });
      assert.deepEqual(
        rows.map(({ model, messages }) => [model, messages]).sort(),
        models.map((model) => [`acme/${model}`, 1]).sort(),
      );
    },
  },
  {
    name: "aggregates the messages between two times in the sessions of a query",
    async run({ store }) {
      await makeThree(store);
      const messages = async (query: Partial<AggregateQuery>): Promise<number | undefined> =>
        (await sums(store, query))[0]?.messages;
      assert.equal(await messages({ from: MIDNIGHT }), 3);
      assert.equal(await messages({ to: MIDNIGHT }), 4);
      assert.equal(await messages({ from: MONDAY, to: TUESDAY }), 5);
      assert.equal(await messages({ userId: "v" }), 3);
      assert.equal(await messages({ cwd: "/one" }), 4);
      assert.equal(await messages({ status: "closed" }), 2);
      assert.equal(await messages({ status: ["active", "suspended"], userId: "v", from: MIDNIGHT }), 2);
    },
  },
  {
    name: "aggregates no messages to one row of zeros without keys, and to no row with keys",
    async run({ store }) {
      const nothing = {
        sessions: 0,
        messages: 0,
        toolCalls: 0,
        usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
        cost: 0,
      };
      assert.deepEqual(await sums(store, {}), [nothing]);
      assert.deepEqual(await sums(store, { groupBy: ["day"] }), []);
      await make(store, "a");
      await store.append("a", [name("no message")]);
      assert.deepEqual(await sums(store, {}), [nothing]);
      assert.deepEqual(await sums(store, { groupBy: ["user", "model"] }), []);
    },
  },
  {
    name: "counts inherited messages of a fork in the source only, and its own messages in the fork",
    async run({ store }) {
      await make(store, "a", { userId: "u" });
      await store.append("a", [user("1", { id: "1" }), user("2", { id: "2" })]);
      await store.fork("a", createHeader({ id: "f", userId: "v" }), { at: "2" });
      await store.append("f", [user("3", { id: "3" })]);
      await store.fork("f", createHeader({ id: "g", userId: "w" }), { at: "1" });
      const rows = (await sums(store, { groupBy: ["user"] })).map(({ user: who, messages }) => [who, messages]);
      assert.deepEqual(rows, [
        ["u", 2],
        ["v", 1],
      ]);
      await store.delete("a");
      assert.equal((await sums(store, {}))[0]?.messages, 1);
    },
  },
  {
    name: "counts messages on every branch, and no other entries",
    async run({ store }) {
      await make(store, "a");
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      await store.append("a", [
        user("1", { id: "1" }),
        user("2"),
        leaf("1"),
        user("3"),
        { ...compaction("1"), usage } as ReturnType<typeof compaction>,
        { type: "custom_message", customType: "t", content: "x", display: true },
      ]);
      const [row] = await sums(store, {});
      assert.deepEqual([row?.messages, row?.usage.totalTokens], [3, 0]);
    },
  },
  {
    name: "refuses an invalid aggregate query",
    async run({ store }) {
      const bad = [
        { groupBy: ["week"] },
        { groupBy: ["day", "day"] },
        { groupBy: "day" },
        {},
        { groupBy: [], from: "2024" },
        { groupBy: [], to: 7 },
        { groupBy: [], status: "x" },
        { groupBy: [], more: 1 },
        null,
      ];
      for (const query of bad) await refuses(store.aggregate(query as AggregateQuery), "INVALID_QUERY");
      await refuses(store.aggregate({ groupBy: [], userId: "" }), "INVALID_ID");
    },
  },
];

async function sums(store: SessionStore, query: Partial<AggregateQuery>): Promise<AggregateRow[]> {
  return store.aggregate({ groupBy: [], ...query });
}

async function makeThree(store: SessionStore): Promise<void> {
  const call = { id: "t", name: "read", arguments: "{}" };
  const tokens = (n: number) => ({ inputTokens: n, outputTokens: 2 * n, totalTokens: 3 * n });
  await make(store, "a", { userId: "u", cwd: "/one" });
  await store.append("a", [
    user("q", { timestamp: MONDAY }),
    assistant(
      "a",
      { provider: "acme", model: "one", usage: tokens(1), cost: 0.5, toolCalls: [call] },
      { timestamp: MONDAY },
    ),
  ]);
  await make(store, "b", { userId: "v" });
  await store.append("b", [
    user("q", { timestamp: MONDAY }),
    assistant(
      "a",
      {
        provider: "acme",
        model: "two",
        usage: { ...tokens(40), cacheReadTokens: 7 },
        cost: 1,
        toolCalls: [call, call],
      },
      { timestamp: MIDNIGHT },
    ),
    assistant("b", { provider: "acme", model: "two", usage: tokens(60), cost: 2 }, { timestamp: TUESDAY }),
  ]);
  await make(store, "c", { cwd: "/one" });
  await store.append("c", [
    assistant("a", { usage: tokens(10) }, { timestamp: MONDAY }),
    user("q", { timestamp: TUESDAY }),
    status("closed"),
  ]);
}
