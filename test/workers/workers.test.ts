import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { drainRuns } from "../../src/agent/active-runs.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { createClient, type WireRunEvent } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import type { ModelReply } from "../../src/agent/model/model.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import {
  bullmqQueue,
  inProcessQueue,
  type RunQueue,
  type RunWorker,
  startWorker,
  type WorkerInit,
} from "../../src/workers/index.ts";
import { makeDirectory } from "../faults/jsonl-support.ts";
import { answering, type Gate, gate, pausing } from "../http/runs-agents.ts";
import { allOf, nextOf } from "../http/runs-server.ts";
import { TOKENS, tokenOf } from "../http/server-support.ts";
import { callOf, calling, modelOf, saying, toolOf } from "../sample-run.ts";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { idle, openFleet } from "./fleet-support.ts";

/** A worker until the test ends, on a memory store unless another manager is given. */
async function work(init: Partial<WorkerInit> & Pick<WorkerInit, "agents">) {
  const manager = init.manager ?? new SessionManager({ store: openMemoryStore() });
  const queue = init.queue ?? inProcessQueue();
  const worker = await startWorker({ sweepMs: 0, ...init, manager, queue });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  return { worker, manager, queue, store: manager.store };
}

/** Agents whose runs are counted by the names in their input, and continue until they are released. */
function counting(): { readonly begun: string[]; readonly agent: ReturnType<typeof createAgent>; readonly hold: Gate } {
  const [begun, hold] = [[] as string[], gate()];
  const model = {
    provider: "test",
    id: "counting",
    async complete({ messages }: { readonly messages: readonly { readonly content: unknown }[] }): Promise<ModelReply> {
      begun.push(String(messages.at(-1)?.content));
      await hold.opened;
      return { role: "assistant", content: "Done." };
    },
  };
  return { begun, hold, agent: createAgent({ name: "helper", prompt: "", model, builtInTools: false }) };
}

/** Asks for a run of a new session, as a server does. */
async function ask(manager: SessionManager, queue: RunQueue, input: string, userId: string, priority: number) {
  const { sessionId } = await manager.create({ userId });
  const { runId } = await manager.request(sessionId, { agent: "helper", input });
  await queue.notify(sessionId, { runner: "helper", priority });
  return { sessionId, runId };
}

test("a store whose leases are valid in one process only accepts no shared queue", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const queue = bullmqQueue({ url: "redis://127.0.0.1:1" });
  const refused = { code: "INVALID_OPTION", message: expect.stringContaining("inProcessQueue()") };
  await expect(startWorker({ manager, agents: [], queue })).rejects.toMatchObject(refused);
  await expect(createServer({ manager, queue })).rejects.toMatchObject(refused);
});

test("names of agents and groups are one namespace, and options that make no sense are refused", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const base = { manager, queue: inProcessQueue(), agents: [answering([], [], "a")] };
  const invalid = { code: "INVALID_OPTION" };
  const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
  await expect(startWorker({ ...base, groups: { a: group } })).rejects.toMatchObject(invalid);
  await expect(startWorker({ ...base, agents: [answering([])] })).rejects.toMatchObject(invalid);
  for (const wrong of [{ concurrency: 0 }, { leaseMs: 10 }, { maxRunsPerUser: 0 }, { sweepMs: -1 }]) {
    await expect(startWorker({ ...base, ...wrong })).rejects.toMatchObject(invalid);
  }
});

test.for([
  { many: 100, first: 10, settings: {} },
  { many: 100, first: 4, settings: { concurrency: 4 } },
])(
  "of one user's $many runs and another's one, the one is among the next ten to begin, with $settings",
  async ({ many, first, settings }) => {
    const { agent, begun, hold } = counting();
    onTestFinished(() => hold.open());
    const queue = inProcessQueue();
    const manager = new SessionManager({ store: openMemoryStore(), config: { maxSessionsPerUser: 200 } });
    const server = await createServer({ manager, queue, agents: [agent], limits: { rate: null }, tokens: TOKENS });
    onTestFinished(() => server.close());
    const url = await server.listen();
    const start = async (userId: string, input: string): Promise<void> => {
      const { sessionId } = await manager.create({ userId });
      await createClient({ url, token: tokenOf(userId) }).runs.start(sessionId, { input });
    };
    for (let from = 0; from < many; from += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => start("ann", `ann ${from + index}`)));
    }
    await work({ agents: [agent], queue, manager, ...settings });
    await expect.poll(() => begun.length).toBe(first);
    await start("bob", "bob");
    hold.open();
    await expect.poll(() => begun.indexOf("bob")).toBeGreaterThan(-1);
    expect(begun.indexOf("bob")).toBeLessThan(first + 10);
  },
);

test("with little capacity, users with fewer requests go first", async () => {
  const { agent, begun, hold } = counting();
  const queue = inProcessQueue();
  const manager = new SessionManager({ store: openMemoryStore() });
  for (let index = 1; index <= 5; index++) await ask(manager, queue, `ann ${index}`, "ann", index);
  await ask(manager, queue, "bob", "bob", 1);
  await work({ agents: [agent], queue, manager, concurrency: 1 });
  await expect.poll(() => begun).toEqual(["ann 1"]);
  hold.open();
  await expect.poll(() => begun).toEqual(["ann 1", "bob", "ann 2", "ann 3", "ann 4", "ann 5"]);
});

test("a run over a user's limit waits, others pass it, and it starts as soon as there is room", async () => {
  const { agent, begun, hold } = counting();
  const { manager, queue, store, worker } = await work({ agents: [agent], maxRunsPerUser: 2 });
  const asked = [];
  for (let index = 1; index <= 4; index++) asked.push(await ask(manager, queue, `ann ${index}`, "ann", 1));
  asked.push(await ask(manager, queue, "bob", "bob", 1));
  await expect.poll(() => begun).toEqual(["ann 1", "ann 2", "bob"]);
  expect(worker.view).toMatchObject({ active: 3, agents: ["helper"], groups: [] });
  hold.open();
  for (const { sessionId } of asked) await idle(store, sessionId);
  expect(begun).toEqual(["ann 1", "ann 2", "bob", "ann 3", "ann 4"]);
});

test("a run begins at its time, and one behind it at its own", async () => {
  const { agent, begun, hold } = counting();
  hold.open();
  const { manager, queue, store } = await work({ agents: [agent] });
  const { sessionId } = await manager.create({ userId: "ann" });
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  const dues = { late: at(500), soon: at(200) };
  for (const [input, notBefore] of Object.entries(dues)) {
    await manager.request(sessionId, { agent: "helper", input, notBefore, ifBusy: "enqueue" });
    await queue.notify(sessionId, { runner: "helper" });
  }
  await idle(store, sessionId);
  expect(begun).toEqual(["soon", "late"]);
  expect(new Date().toISOString() >= dues.late).toBe(true);
});

test("a notification for a held session is delivered again when the lease ends", async () => {
  const { agent, begun, hold } = counting();
  hold.open();
  const { manager, queue, store } = await work({ agents: [agent], leaseMs: 1000 });
  const { sessionId } = await manager.create({ userId: "ann" });
  const lease = await store.lease(sessionId, "another", 600);
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  await queue.notify(sessionId, { runner: "helper" });
  await expect.poll(async () => (await queue.counts()).delayed).toBe(1);
  expect(begun).toEqual([]);
  await idle(store, sessionId);
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(lease.expiresAt));
});

test("a run without a notification is found by the sweep", async () => {
  const { agent, begun, hold } = counting();
  hold.open();
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "before" });
  await work({ agents: [agent], manager, sweepMs: 50 });
  await idle(manager.store, sessionId);
  await manager.request(sessionId, { agent: "helper", input: "after" });
  await expect.poll(() => begun).toEqual(["before", "after"]);
});

test("a run for an agent that a worker lacks is left to workers that have it", async () => {
  const queue = inProcessQueue();
  const { manager, store } = await work({ agents: [answering(["?"], [], "other")], queue, sweepMs: 20 });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  await queue.notify(sessionId, { runner: "other" });
  await expect.poll(async () => (await queue.counts()).waiting).toBe(1);
  await work({ agents: [answering(["Here."], [], "helper")], queue, manager });
  await idle(store, sessionId);
});

test("a group is run as agents are, and stopped at its deadline", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const group = (reply: Parameters<typeof answering>[0]) =>
    new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) }).addAgent(answering(reply, [], "member"));
  const groups = { crew: group(["Agreed."]), slow: group([pausing(["a", "b"], gate())]) };
  const { queue, store } = await work({ agents: [], groups, manager });
  const ends: unknown[] = [];
  for (const [name, deadline] of [
    ["crew", {}],
    ["slow", { deadline: new Date(Date.now() + 300).toISOString() }],
  ] as const) {
    const { sessionId } = await manager.create({ userId: "ann" });
    await manager.request(sessionId, { group: name, input: "Go.", ...deadline });
    await queue.notify(sessionId, { runner: name });
    await idle(store, sessionId);
    for await (const entry of store.read(sessionId, { reverse: true, limit: 1 })) ends.push(entry);
  }
  expect(ends).toMatchObject([
    { type: "run", phase: "finished" },
    { type: "run", phase: "failed", error: { code: "DEADLINE" } },
  ]);
});

test("a group's run that names no group is not given to a worker's only group", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const hold = gate();
  const crew = (reply: Parameters<typeof answering>[0]) =>
    new GroupSession({ manager }).addAgent(answering(reply, [], "member"));
  const { sessionId } = await manager.create({ userId: "ann" });
  const run = crew([pausing(["a", "b"], hold)]).stream(sessionId, "Go.");
  for await (const event of run) if (event.type === "text-delta") break;
  await Promise.all([
    drainRuns({ timeoutMs: 0, ids: [run.id] }),
    expect(run).rejects.toMatchObject({ code: "ABORTED" }),
  ]);
  const { queue, store } = await work({ agents: [], groups: { crew: crew(["Not mine."]) }, manager });
  await queue.notify(sessionId, { runner: "" });
  await expect
    .poll(async () => (await store.head(sessionId))?.openRuns)
    .toMatchObject([{ runId: run.id, state: "started", blocked: "AGENT_NOT_FOUND" }]);
});

describe("a worker that drains hands a run over when the last result of a round is recorded", () => {
  /** A worker on a queue that others could share, a run with two calls, and its log. */
  async function draining(): Promise<{
    readonly rows: () => Promise<string[]>;
    readonly start: () => Promise<RunWorker>;
    readonly asked: () => number;
    readonly acting: () => number;
    readonly slow: Gate;
  }> {
    const store = await openSqliteStore({ path: join(await makeDirectory(), "skein.db") });
    onTestFinished(() => store.close());
    const manager = new SessionManager({ store });
    const slow = gate();
    let [asked, acting] = [0, 0];
    const model = modelOf(async () => {
      asked += 1;
      return asked === 1 ? calling(callOf("1", "quick"), callOf("2", "slow")) : saying("Done.");
    });
    const act = async (): Promise<string> => {
      acting += 1;
      await slow.opened;
      return "done";
    };
    const tools = [toolOf("quick"), toolOf("slow", act, { idempotent: true })];
    const agents = [createAgent({ name: "helper", prompt: "Work.", model, tools, builtInTools: false })];
    const { sessionId } = await manager.create({ userId: "ann" });
    await manager.request(sessionId, { agent: "helper", input: "Go." });
    const start = async (): Promise<RunWorker> => {
      const inner = inProcessQueue();
      // Any queue but the one in the process may have other workers.
      const queue = new Proxy({} as RunQueue, {
        get: (_target, key: keyof RunQueue) => inner[key].bind(inner),
      });
      const { worker } = await work({ agents, queue, manager });
      await queue.notify(sessionId, { runner: "helper" });
      return worker;
    };
    const rows = async (): Promise<string[]> => {
      const told: string[] = [];
      for await (const entry of store.read(sessionId))
        if (entry.type === "message") told.push(entry.message.role);
        else if (entry.type === "run") told.push(entry.phase);
      return told;
    };
    return { rows, start, slow, asked: () => asked, acting: () => acting };
  }

  test("and not before", async () => {
    const { rows, start, slow, asked, acting } = await draining();
    const worker = await start();
    await expect.poll(acting).toBe(1);
    await expect.poll(rows).toContain("tool");
    const closed = worker.close();
    slow.open();
    await closed;
    expect([asked(), await rows()]).toEqual([1, ["user", "started", "assistant", "tool", "tool"]]);
  });

  test("if it took over the run in the middle of the round, too", async () => {
    const { rows, start, slow, asked, acting } = await draining();
    const first = await start();
    await expect.poll(rows).toContain("tool");
    await first.close({ drainMs: 0 });
    const second = await start();
    await expect.poll(acting).toBe(2);
    const closed = second.close();
    slow.open();
    await closed;
    expect([asked(), await rows()]).toEqual([1, ["user", "started", "assistant", "tool", "started", "tool"]]);
  });
});

test("a run is requested on one server, streamed on a second, approved on a third and finished on a fourth", async (context) => {
  if (redisSkip !== null) skipBecause(context, redisSkip);
  const fleet = await openFleet("redis");
  const hold = gate();
  const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
  const agent = answering([calling(callOf("1", "pay")), pausing(["Paid", " it", "."], hold)], [pay], "helper");
  const open = async () => {
    const queue = bullmqQueue({ url: fleet.queueUrl });
    const server = await createServer({ manager: fleet.manager, queue, agents: [agent] });
    onTestFinished(async () => {
      await server.close({ drainMs: 0 });
      await queue.close();
    });
    return createClient({ url: await server.listen() });
  };
  const [one, two, three, four] = await Promise.all([open(), open(), open(), open()]);
  await work({ agents: [agent], queue: fleet.queue, manager: fleet.manager, park: { afterMs: 50 } });
  const { id } = (await one.sessions.create({})).header;
  const run = await one.runs.start(id, { input: "Pay." });
  expect(run.withoutWorker).toBe(false);
  const seen: WireRunEvent[] = [];
  const reading = (async () => {
    for await (const event of two.runs.events(id, run.runId)) seen.push(event);
  })();
  const { questions } = await nextOf(two, run, "run-parked");
  await three.runs.approve(id, questions[0]?.question ?? "");
  await expect.poll(() => seen.filter(({ type }) => type === "text-delta").length).toBe(2);
  // A late reader gets the earlier text.
  expect(await nextOf(three, run, "text-delta")).toMatchObject({ text: "Paid" });
  expect(await four.runs.cancel(id, run.runId)).toMatchObject({ status: "cancelled" });
  await reading;
  expect(seen.flatMap((event) => (event.type === "text-delta" ? event.text : []))).toEqual(["Paid", " it"]);
  expect(seen.at(-1)).toMatchObject({ type: "run-failed", error: { code: "ABORTED" } });
  hold.open();
});

test("a run that no live worker can take is shown as such, and beyond maxWaiting no more are accepted", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const queue = inProcessQueue();
  const server = await createServer({
    manager,
    queue,
    agents: [answering([], [], "helper")],
    limits: { maxWaiting: 2 },
  });
  onTestFinished(() => server.close());
  const client = createClient({ url: await server.listen() });
  const ids = [];
  for (let index = 0; index < 3; index++) ids.push((await client.sessions.create({})).header.id);
  const [first, second, third] = ids as [string, string, string];
  const run = await client.runs.start(first, { input: "Hi." });
  await client.runs.start(second, { input: "Hi." });
  const before = (await manager.store.head(third))?.version;
  const refused = await fetch(`${server.url}/api/sessions/${third}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "Hi." }),
  });
  expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
    503,
    "5",
    expect.objectContaining({ code: "OVERLOADED" }),
  ]);
  expect((await manager.store.head(third))?.version).toBe(before);
  await expect.poll(async () => (await client.runs.get(first, run.runId)).withoutWorker).toBe(true);
  let asked = 0;
  await queue.subscribe("workers.who", () => {
    asked += 1;
  });
  const { workers, waiting, requested } = await client.fleet();
  // A listing shows the present state.
  expect(asked).toBe(1);
  expect([workers, waiting, requested.items.map(({ withoutWorker }) => withoutWorker)]).toEqual([[], 2, [true, true]]);
  await work({ agents: [answering(["Hello.", "Hello."], [], "helper")], queue, manager });
  expect((await allOf(client, run)).at(-1)).toMatchObject({ type: "run-finished" });
  expect((await client.runs.get(first, run.runId)).withoutWorker).toBe(false);
  await pause(0);
});

test("an answered run that is bound to a machine is without a worker until one is there", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const queue = inProcessQueue();
  const server = await createServer({ manager, queue, agents: [answering([], [], "helper")] });
  onTestFinished(() => server.close());
  const client = createClient({ url: await server.listen() });
  const { id } = (await client.sessions.create({})).header;
  const { runId } = await client.runs.start(id, { input: "Pay." });
  const asked = { id: "ask", type: "approval", runId, callId: "1", asked: { name: "pay" } } as const;
  await manager.store.append(id, [
    { type: "run", runId, phase: "started" },
    { id: `run:${runId}/input`, type: "message", message: { role: "user", content: "Pay." } },
    asked,
    { type: "run_parked", runId, questions: [{ callId: "1", question: "ask" }], host: "elsewhere" },
  ]);
  await client.runs.approve(id, "ask");
  const say = (host: string): Promise<void> => {
    const view = { name: host, host, agents: ["helper"], groups: [], concurrency: 1, active: 0, runs: [] };
    return queue.publish("workers", Buffer.from(JSON.stringify(view)));
  };
  const shown = async (): Promise<readonly boolean[]> => {
    const { requested } = await client.fleet();
    return [(await client.runs.get(id, runId)).withoutWorker, ...requested.items.map((run) => run.withoutWorker)];
  };
  const beat = async (...hosts: readonly string[]): Promise<readonly boolean[]> => {
    for (const host of hosts) await say(host);
    return shown();
  };
  // A new listener does not know the workers yet.
  await expect.poll(() => beat("here")).toEqual([true, true]);
  expect(await beat("here", "elsewhere")).toEqual([false, false]);
});

test("the loss of the queue is reported to its workers and servers", async (context) => {
  const missing = redisMissing();
  if (missing !== null) skipBecause(context, missing);
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const fleet = await openFleet("postgres");
  const queue = bullmqQueue({ url: redis.url });
  onTestFinished(() => queue.close());
  const told: Record<string, string[]> = { worker: [], server: [] };
  const agents = [answering([], [], "helper")];
  const { manager } = fleet;
  const { worker } = await work({ agents, queue, manager, onError: (error) => told.worker?.push(String(error)) });
  const logger = ({ error }: { readonly error?: string }): void => void told.server?.push(String(error));
  const server = await createServer({ manager, queue, agents, logger });
  onTestFinished(() => server.close({ drainMs: 0 }));
  await redis.halt();
  const said = [expect.stringMatching(/The queue at 127\.0\.0\.1:\d+ has failed, and is tried again: ./)];
  await expect.poll(() => told).toEqual({ worker: said, server: said });
  await server.close({ drainMs: 0 });
  await redis.resume();
  const notifies = (): Promise<boolean> =>
    queue.notify("none", { runner: "none" }).then(
      () => true,
      () => false,
    );
  await expect.poll(notifies).toBe(true);
  await worker.close({ drainMs: 0 });
});
