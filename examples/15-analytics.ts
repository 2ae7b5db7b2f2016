// The cost of sessions: of one turn by turn, and of many by day, model and user, without loading any turns.
import assert from "node:assert/strict";
import { openManager } from "skein";
import { aggregateAnalytics, computeAnalytics } from "skein/lifecycle";
import { openMemoryStore } from "skein/memory";

await using store = openMemoryStore();
const manager = await openManager({ store });

const usage = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
});

const { sessionId } = await manager.create({ userId: "ann" });
await manager.addTurn(sessionId, {
  role: "user",
  content: "Where is my order?",
  timestamp: "2026-03-01T09:00:00.000Z",
});
await manager.addTurn(sessionId, {
  role: "assistant",
  content: null,
  toolCalls: [{ id: "c1", name: "find_order", arguments: '{"number":4711}' }],
  provider: "openai",
  model: "small",
  usage: usage(100, 20),
  cost: 0.001,
  timestamp: "2026-03-01T09:00:02.000Z",
});
await manager.addTurn(sessionId, {
  role: "tool",
  toolCallId: "c1",
  toolName: "find_order",
  content: "on its way",
  timestamp: "2026-03-01T09:00:03.000Z",
});
await manager.addTurn(sessionId, {
  role: "assistant",
  content: "It is on its way.",
  provider: "openai",
  model: "large",
  usage: usage(150, 10),
  cost: 0.004,
  timestamp: "2026-03-01T09:00:06.000Z",
});

const state = await manager.getState(sessionId);
assert.ok(state !== null);
const one = computeAnalytics(state);
console.log(one);
assert.deepEqual(
  { turns: one.totalTurns, tokens: one.totalTokens, cost: one.totalCost, seconds: one.durationSeconds },
  { turns: 4, tokens: 280, cost: 0.005, seconds: 6 },
);
assert.equal(one.avgResponseTimeMs, 2000);
assert.deepEqual([one.modelsUsed, one.toolsInvoked, one.agentsUsed], [["small", "large"], ["find_order"], ["openai"]]);

// Another user, another day.
const other = await manager.create({ userId: "bob" });
await manager.addTurn(other.sessionId, {
  role: "assistant",
  content: "Good morning!",
  provider: "openai",
  model: "small",
  usage: usage(10, 5),
  cost: 0.0005,
  timestamp: "2026-03-02T08:00:00.000Z",
});

const all = await aggregateAnalytics(store);
console.table(
  all.byModel.map(({ model, totalTurns, totalTokens, totalCost }) => ({ model, totalTurns, totalTokens, totalCost })),
);
assert.deepEqual(
  all.byDay.map(({ day, totalTokens }) => [day, totalTokens]),
  [
    ["2026-03-01", 280],
    ["2026-03-02", 15],
  ],
);
assert.deepEqual(
  all.byUser.map(({ user, sessions, totalTurns }) => [user, sessions, totalTurns]),
  [
    ["ann", 1, 4],
    ["bob", 1, 1],
  ],
);
assert.deepEqual(
  all.byModel.map(({ model, totalTokens }) => [model, totalTokens]),
  [
    [null, 0],
    ["openai/large", 160],
    ["openai/small", 135],
  ],
);
assert.equal(all.totals.sessions, 2);

// The same for a part of them.
const anns = await aggregateAnalytics(store, { userId: "ann", from: "2026-03-01T09:00:05.000Z" });
assert.deepEqual([anns.totals.totalTurns, anns.totals.totalTokens], [1, 160]);
