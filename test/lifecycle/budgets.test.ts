import { afterEach, expect, test, vi } from "vitest";
import type { Model } from "../../src/agent/model/model.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";
import { createAgent, createHeader } from "../../src/index.ts";
import { exportSession, importSession } from "../../src/export/index.ts";
import { GroupSession } from "../../src/group/index.ts";
import type { UserBudget } from "../../src/lifecycle/budgets/user-budget.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { compact } from "../../src/agent/context/compact.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { callOf, calling, modelOf, saying, toolOf } from "../sample-run.ts";

const HOUR_MS = 3_600_000;
const open: SessionStore[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

/** A model whose answers each spend so many tokens, and as many cents. */
function spender(
  totalTokens: number,
  more: Partial<Model> & { readonly calls?: number } = {},
): Model & { asked: number } {
  const { calls = 0, ...rest } = more;
  const usage = { inputTokens: totalTokens / 2, outputTokens: totalTokens / 2, totalTokens };
  const model = modelOf(async () => {
    const answer = self.asked++ < calls ? calling(callOf(`c${self.asked}`, "look")) : saying(`answer ${self.asked}`);
    return { ...answer, usage, cost: totalTokens / 100 };
  }, rest) as Model & { asked: number };
  const self = Object.assign(model, { asked: 0 });
  return self;
}

const look = toolOf("look", () => "seen");

function managerWith(
  budgets: readonly UserBudget[],
  more: Partial<ConstructorParameters<typeof SessionManager>[0]> = {},
) {
  const { store = openMemoryStore(), ...rest } = more;
  open.push(store);
  return new SessionManager({ store, budgets, ...rest });
}

const agentOn = (model: Model, more = {}) =>
  createAgent({ name: "helper", prompt: "Help.", model, tools: [look], builtInTools: false, ...more });

async function spentOf(manager: SessionManager, userId: string): Promise<readonly number[][]> {
  const levels = (await manager.budgets?.levels(userId)) ?? [];
  return levels.map(({ spent, reserved }) => [spent, reserved]);
}

test("counts every answer of a run, and ends the run at the limit with its messages so far", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 250, warnAt: 0.5 }]);
  const model = spender(100, { calls: 9 });
  const run = manager.run(agentOn(model), "Look around.", { userId: "ada" });
  const events: RunEvent[] = [];
  run.listen((event) => events.push(event));
  const answer = await run;
  expect(model.asked).toBe(3);
  expect(answer.lineage.extras).toContainEqual(["loop.truncated", true]);
  expect(await spentOf(manager, "ada")).toEqual([[300, 0]]);
  const warnings = events.filter((event) => event.type === "budget-warning");
  expect(warnings).toMatchObject([
    { exceeded: false, window: "1d", unit: "totalTokens", limit: 250, spent: 200 },
    { exceeded: true, spent: 300 },
  ]);
  const refused = manager.run(agentOn(model), "Go on.", { userId: "ada" });
  await expect(refused).rejects.toMatchObject({ code: "BUDGET_EXCEEDED", userId: "ada" });
  await expect(refused).rejects.toThrow(/User "ada" has spent 300 tokens of 250 tokens in 1d; the window moves on at /);
  expect(model.asked).toBe(3);
  await manager.run(agentOn(model), "I am someone else.", { userId: "eve" });
  expect(await spentOf(manager, "eve")).not.toEqual([[0, 0]]);
});

test("slides the window by whole hours, and reports when it moves next", async () => {
  let now = Date.parse("2026-03-01T10:30:00.000Z");
  const manager = managerWith([{ per: "user", window: "3h", cost: 2 }], { clock: () => new Date(now) });
  const ask = () => manager.run(agentOn(spender(100)), "Hello.", { userId: "ada" });
  await ask();
  now += HOUR_MS;
  await ask();
  expect(await spentOf(manager, "ada")).toEqual([[2, 0]]);
  await expect(ask()).rejects.toMatchObject({ level: { movesOnAt: "2026-03-01T13:00:00.000Z" } });
  now = Date.parse("2026-03-01T12:59:59.999Z");
  await expect(ask()).rejects.toMatchObject({ code: "BUDGET_EXCEEDED" });
  now += 1;
  expect(await spentOf(manager, "ada")).toEqual([[1, 0]]);
  await ask();
  now += 10 * HOUR_MS;
  expect(await spentOf(manager, "ada")).toEqual([[0, 0]]);
});

test("reserves the cost of a request while it runs, so that of many concurrent ones few overspend", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 3000 }]);
  let [started, release] = [0, () => {}];
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const usage = { inputTokens: 20, outputTokens: 980, totalTokens: 1000 };
  const slow = modelOf(async () => {
    started += 1;
    await gate;
    return saying("done", { usage });
  });
  const runs = Array.from({ length: 16 }, () => manager.run(agentOn(slow), "Hello.", { userId: "ada" }));
  const settled = Promise.allSettled(runs);
  await expect.poll(async () => (await spentOf(manager, "ada"))[0]?.[1]).toBeGreaterThanOrEqual(3000);
  release();
  const results = await settled;
  expect(started).toBe(3);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  expect(await spentOf(manager, "ada")).toEqual([[3000, 0]]);
});

test("the user who requests a run in the session of another pays for it", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 1000 }]);
  const { sessionId } = await manager.create({ userId: "ada" });
  await manager.run(sessionId, agentOn(spender(100)), "Hello.", { actor: { userId: "root", admin: true } });
  const actor = { userId: "root", admin: true };
  await manager.request(sessionId, { input: "Once more.", runId: "asked" }, { actor });
  const found = await manager.recover(sessionId, { helper: agentOn(spender(50)) });
  await found?.run;
  expect([await spentOf(manager, "root"), await spentOf(manager, "ada")]).toEqual([[[150, 0]], [[0, 0]]]);
  await manager.request(sessionId, { input: "The owner's program.", runId: "own" });
  await (await manager.recover(sessionId, { helper: agentOn(spender(50)) }))?.run;
  expect([await spentOf(manager, "root"), await spentOf(manager, "ada")]).toEqual([[[150, 0]], [[50, 0]]]);
});

test("a session without an owner is paid for by the user of the manager", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 1000 }]);
  await manager.store.create(createHeader({ id: "s" }));
  await manager.run("s", agentOn(spender(100)), "Hello.");
  expect(await spentOf(manager, "local")).toEqual([[100, 0]]);
});

test("counts runs inside tools, the agents of a group, compactions, and the retries of an output", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 100_000 }]);
  const spent = async () => (await spentOf(manager, "ada"))[0]?.[0];
  const inner = agentOn(spender(7));
  const ask = toolOf("look", async () => (await inner.run("Look for me.")).text());
  await manager.run(agentOn(spender(100, { calls: 1 }), { tools: [ask] }), "Look.", { userId: "ada" });
  expect(await spent()).toBe(207);
  const { sessionId } = await manager.create({ userId: "ada" });
  const group = new GroupSession({ manager });
  group.addAgent(agentOn(spender(1000), { name: "one" }));
  const usage = { inputTokens: 5, outputTokens: 5, totalTokens: 10 };
  group.addAgent({ name: "two", execute: async () => ({ role: "assistant", content: "I agree.", usage }) });
  await group.run(sessionId, "What do you think?", { maxRounds: 1 });
  expect(await spent()).toBe(1217);
  const tree = await manager.open(sessionId);
  await compact(tree, { model: spender(30_000), settings: { keepRecentTokens: 1 } });
  expect(await spent()).toBe(31_217);
  const wrong = spender(10);
  const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
  await expect(manager.run(agentOn(wrong), "A number.", { userId: "ada", output })).rejects.toMatchObject({
    code: "OUTPUT_INVALID",
  });
  expect(wrong.asked).toBe(3);
  expect(await spent()).toBe(31_247);
});

test("deleted sessions count, imported ones do not, and erasing a user erases their spending", async () => {
  const manager = managerWith([{ per: "user", window: "1d", totalTokens: 1000 }]);
  const answer = await manager.run(agentOn(spender(100)), "Hello.", { userId: "ada" });
  const lines: string[] = [];
  for await (const line of exportSession(manager.store, answer.sessionId, { format: "jsonl" })) lines.push(line);
  await importSession(manager.store, lines, { id: "imported", userId: "ada", trust: true });
  expect(await spentOf(manager, "ada")).toEqual([[100, 0]]);
  await manager.delete(answer.sessionId);
  await manager.store.purge({ sessionId: answer.sessionId });
  expect(await spentOf(manager, "ada")).toEqual([[100, 0]]);
  await manager.erase({ userId: "ada" });
  expect(await spentOf(manager, "ada")).toEqual([[0, 0]]);
  expect(await manager.store.ledger.read("ada")).toBeNull();
});

test("refuses budgets that cannot work, a store without a ledger, and a model without a price", async () => {
  const store = openMemoryStore();
  for (const wrong of [
    { window: "1d" },
    { window: "0d", cost: 1 },
    { window: "367d", cost: 1 },
    { window: "1w", cost: 1 },
    { window: "1d", cost: -1 },
    { window: "1d", cost: 1, warnAt: 2 },
    { window: "1d", cost: 1, per: "session" },
    { window: "1d", costs: 1 },
  ])
    expect(() => new SessionManager({ store, budgets: [{ per: "user", ...wrong } as never] })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  const budgets: readonly UserBudget[] = [{ per: "user", window: "1d", cost: 1 }];
  const capabilities = { ...store.capabilities, ledger: false };
  const without = Object.create(store, { capabilities: { value: capabilities } }) as SessionStore;
  expect(() => new SessionManager({ store: without, budgets })).toThrow(
    expect.objectContaining({ code: "NOT_SUPPORTED" }),
  );
  const model = spender(100, { reportsCost: false });
  await expect(managerWith(budgets, { store }).run(agentOn(model), "Hello.", { userId: "ada" })).rejects.toMatchObject({
    code: "PRICE_UNKNOWN",
  });
  expect(model.asked).toBe(0);
});

test("writes to the ledger once in each round near a limit, and once in eight rounds far from it", async () => {
  const written = async (limit: number): Promise<number> => {
    const store = openMemoryStore();
    const { ledger } = store;
    const replace = vi.spyOn(ledger, "replace");
    const manager = managerWith([{ per: "user", window: "1d", totalTokens: limit }], { store });
    await manager.run(agentOn(spender(100, { calls: 31 })), "Look around.", { userId: "ada" });
    expect((await spentOf(manager, "ada"))[0]).toEqual([3200, 0]);
    return replace.mock.calls.length;
  };
  // The last one ends the reservation.
  expect(await written(100_000)).toBe(32 + 1);
  expect(await written(1_000_000_000)).toBeLessThanOrEqual(2 + 4 + 1);
});
