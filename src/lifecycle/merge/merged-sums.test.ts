import { expect, test } from "vitest";
import { assistant, usage, user } from "../../../test/sample-log.ts";
import { aggregateAnalytics } from "../aggregate-analytics.ts";
import { callAnalytics } from "../call-analytics.ts";
import { SessionManager } from "../session-manager.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { ownSpending } from "../../tree/own-spending.ts";
import { createHeader } from "../../session/log/header.ts";

const call = { id: "c", name: "lookup", arguments: "{}" };
const answer = (tokens: number) =>
  ({
    type: "message",
    message: assistant("Yes.", {
      provider: "acme",
      model: "one",
      usage: usage(tokens, 0),
      cost: 0.5,
      toolCalls: [call],
    }),
  }) as const;

/** A session with five answers, and a fork of it with one more; six answers, 2,232 tokens. */
async function fiveAndOne() {
  const store = openMemoryStore();
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  await store.append(sessionId, [{ type: "message", message: user("Hello?") }]);
  for (const tokens of [400, 400, 400, 400, 344]) await store.append(sessionId, [answer(tokens)]);
  const branch = (await manager.fork(sessionId, "try")).sessionId;
  await store.append(branch, [answer(288)]);
  return { store, manager, sessionId, branch };
}

/** Answers, tokens and tool calls over all sessions. */
async function sums(store: Awaited<ReturnType<typeof fiveAndOne>>["store"]) {
  const { byModel } = await aggregateAnalytics(store);
  const answers = byModel.find(({ model }) => model === "acme/one");
  const { tools } = await callAnalytics(store);
  return [answers?.totalTurns, answers?.totalTokens, answers?.totalCost, answers?.toolCalls, tools[0]?.calls];
}

test("a merged turn counts once in totals over sessions: six answers with 2,232 tokens stay six with 2,232", async () => {
  const { store, manager, sessionId, branch } = await fiveAndOne();
  const before = await sums(store);
  await manager.merge(sessionId, branch);
  expect(before).toEqual([6, 2232, 3, 6, 6]);
  expect(await sums(store)).toEqual(before);
  const own = await ownSpending(store, (await store.head(sessionId))!, { forked: true });
  expect([own?.usage.totalTokens, own?.cost]).toEqual([1944, 2.5]);
  // The session's own totals include its merged turns.
  expect((await manager.getState(sessionId))?.totalTokens).toBe(2232);
});

test("a merged turn still counts once when its branch was deleted", async () => {
  const { store, manager, sessionId, branch } = await fiveAndOne();
  await manager.merge(sessionId, branch);
  await manager.delete(branch);
  expect(await sums(store)).toEqual([6, 2232, 3, 6, 6]);
});

test("a turn that was merged several times counts once, with its branch and without", async () => {
  const { store, manager, sessionId, branch } = await fiveAndOne();
  const deeper = (await manager.fork(branch, "deeper")).sessionId;
  await store.append(deeper, [answer(10)]);
  await manager.merge(branch, deeper);
  await manager.merge(sessionId, branch);
  expect((await sums(store)).slice(0, 2)).toEqual([7, 2242]);
  await manager.delete(deeper);
  expect((await sums(store)).slice(0, 2)).toEqual([7, 2242]);
});

test("a false origin in a turn neither excludes it from totals nor breaks them", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s" }));
  const spent = { usage: usage(5, 0), provider: "acme", model: "one" };
  const origins = [
    { sessionId: "s", turnId: "self" },
    { sessionId: "s", turnId: "other" },
    { sessionId: "../no id", turnId: "x" },
    { sessionId: "s" },
    "text",
    null,
  ];
  await store.append("s", [{ type: "message", id: "other", message: user("Not this.") }]);
  for (const [index, mergedFrom] of origins.entries()) {
    const message = assistant("Yes.", { ...spent, metadata: { mergedFrom } });
    await store.append("s", [{ type: "message", id: index === 0 ? "self" : `m${index}`, message }]);
  }
  expect((await sums(store)).slice(0, 2)).toEqual([6, 30]);
});
