import { expect, onTestFinished, type TestContext, test } from "vitest";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { createAgent } from "../../src/agent/agent.ts";
import { createClient } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import { calling, callOf, modelOf, saying, toolOf } from "../sample-run.ts";
import { skipBecause } from "../skip.ts";
import { entriesOf, idle } from "../workers/fleet-support.ts";
import { type HeldConnection, startProxy } from "./tcp-proxy.mjs";

const TIMEOUT_MS = 60_000;

/** The type of entry whose append loses its response. */
const SENT = {
  question: /"type\W+approval\b/,
  parked: /"type\W+run_parked\b/,
  started: /"phase\W+started\b/,
  finished: /"phase\W+finished\b/,
  failed: /"phase\W+failed\b/,
} as const;

/** A session with a requested run, which a worker starts that has lost the response to one append. */
interface LostAnswer {
  readonly sessionId: string;
  readonly runId: string;
  /** The same store over connections without faults. */
  readonly whole: SessionManager;
  /** The store of the run, over connections that lose a response. */
  readonly cut: SessionStore;
  readonly held: HeldConnection;
  /** The number of executions of the tool. */
  readonly effects: readonly string[];
}

/** Resolves when the entry whose response is lost is recorded, unknown to its writer. */
async function loseAnswer(
  kind: "postgres" | "redis",
  context: TestContext,
  {
    sent,
    parkMs = 60_000,
    asks = true,
    fails = false,
  }: { sent: RegExp; parkMs?: number; asks?: boolean; fails?: boolean },
): Promise<LostAnswer> {
  const { url, isMissing } = await serverOf(kind);
  if (isMissing !== null) skipBecause(context, isMissing);
  const proxy = await startProxy(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  const [cut, whole] = [await managerAt(proxy.through(url)), await managerAt(url)];
  const effects: string[] = [];
  const pay = toolOf("pay", (_args, { runId }) => void effects.push(runId), { needsApproval: () => asks });
  const model = modelOf(async ({ messages }) => {
    if (messages.at(-1)?.role === "tool") return saying("Done.");
    if (fails) throw new Error("The model is broken.");
    return calling(callOf("call", "pay"));
  });
  const agents = [createAgent({ name: "helper", prompt: "", model, builtInTools: false, tools: [pay] })];
  const queue = inProcessQueue();
  const park = { afterMs: parkMs };
  const worker = await startWorker({
    manager: cut,
    agents,
    queue,
    park,
    leaseMs: 10_000,
    sweepMs: 500,
    onError: () => {},
  });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  const { sessionId } = await whole.create({ userId: "ann" });
  const { runId } = await whole.request(sessionId, { agent: "helper", input: "Pay." });
  const holding = proxy.holdAnswers(sent);
  await queue.notify(sessionId, { runner: "helper" });
  const held = await holding;
  const isOnRecord = async (): Promise<boolean> =>
    (await entriesOf(whole.store, sessionId)).some((entry) => sent.test(JSON.stringify(entry)));
  await expect.poll(isOnRecord, { timeout: 10_000 }).toBe(true);
  return { sessionId, runId, whole, cut: cut.store, held, effects };
}

async function serverOf(kind: "postgres" | "redis"): Promise<{ url: string; isMissing: string | null }> {
  if (kind === "postgres") return { url: await postgresUrl(), isMissing: null };
  const isMissing = redisMissing();
  if (isMissing !== null) return { url: "redis://127.0.0.1:1", isMissing };
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return { url: redis.url, isMissing };
}

async function managerAt(url: string): Promise<SessionManager> {
  const store = await openStore(url);
  onTestFinished(() => store.close());
  return new SessionManager({ store });
}

/** A summary of a run's log, in the words of its events. */
async function factsOf(store: SessionStore, { sessionId, runId }: LostAnswer): Promise<string[]> {
  return (await entriesOf(store, sessionId)).flatMap((entry) => factOf(entry, runId) ?? []);
}

function factOf(entry: Entry, runId: string): string | null {
  if (entry.type === "run" && entry.runId === runId)
    return entry.phase === "started" ? "run-started" : `run-${entry.phase === "finished" ? "finished" : "failed"}`;
  if (entry.type === "run_parked") return "run-parked";
  if (entry.type === "approval" && entry.decision === undefined) return "approval-required";
  if (entry.type !== "message" || entry.message.role === "user") return null;
  return entry.message.role === "tool" ? "tool-finished" : "round-finished";
}

/** The events that a reader of a finished run gets. */
async function toldOf({ whole, sessionId, runId }: LostAnswer): Promise<string[]> {
  const server = await createServer({ manager: whole });
  onTestFinished(() => server.close({ drainMs: 0 }));
  const told: string[] = [];
  for await (const { type } of createClient({ url: await server.listen() }).runs.events(sessionId, runId))
    told.push(type);
  return told;
}

/** Resolves when the run's store has notified others of the answer, as it notifies the run. */
async function isHeard({ cut, sessionId }: LostAnswer): Promise<void> {
  for await (const entry of cut.watch(sessionId, { after: 0 }))
    if (entry.type === "approval" && entry.decision !== undefined) return;
}

async function questionOf({ whole, sessionId }: LostAnswer): Promise<string> {
  const entries = await entriesOf(whole.store, sessionId);
  return entries.find(({ type }) => type === "approval")?.id ?? "";
}

const ONE_CLAIM = ["run-started", "round-finished", "approval-required"];
const AFTER_PARKING = ["run-parked", "run-started", "tool-finished", "round-finished", "run-finished"];

for (const kind of ["postgres", "redis"] as const) {
  test(`a run on ${kind} whose parking was stored without its knowledge does not continue when it receives the answer`, {
    timeout: TIMEOUT_MS,
  }, async (context) => {
    const lost = await loseAnswer(kind, context, { sent: SENT.parked, parkMs: 600 });
    await lost.whole.approve(lost.sessionId, await questionOf(lost));
    // On Redis, all calls of a store go over one connection.
    if (kind === "postgres") await isHeard(lost);
    lost.held.reset();
    await idle(lost.whole.store, lost.sessionId, 30_000);
    expect(await factsOf(lost.whole.store, lost)).toEqual([...ONE_CLAIM, ...AFTER_PARKING]);
    expect(await toldOf(lost)).toEqual([...ONE_CLAIM, ...AFTER_PARKING]);
    expect(lost.effects).toEqual([lost.runId]);
  });

  test(`a run on ${kind} whose question was stored without its knowledge receives an answer from before it knew`, {
    timeout: TIMEOUT_MS,
  }, async (context) => {
    const lost = await loseAnswer(kind, context, { sent: SENT.question });
    await lost.whole.approve(lost.sessionId, await questionOf(lost));
    lost.held.reset();
    await idle(lost.whole.store, lost.sessionId, 30_000);
    const facts = [...ONE_CLAIM, "tool-finished", "round-finished", "run-finished"];
    expect(await factsOf(lost.whole.store, lost)).toEqual(facts);
    expect(lost.effects).toEqual([lost.runId]);
  });

  test(`a run on ${kind} that was cancelled between its claim and the answer to that is stopped`, {
    timeout: TIMEOUT_MS,
  }, async (context) => {
    const lost = await loseAnswer(kind, context, { sent: SENT.started });
    await lost.whole.cancel(lost.sessionId, { runId: lost.runId });
    lost.held.reset();
    await idle(lost.whole.store, lost.sessionId, 30_000);
    const facts = await factsOf(lost.whole.store, lost);
    expect([facts.filter((fact) => fact === "run-started").length, facts.at(-1)]).toEqual([1, "run-failed"]);
    expect(lost.effects).toEqual([]);
  });

  test.for(["finished", "failed"] as const)(
    `a run on ${kind} that has %s without its knowledge, followed by new input, ends once`,
    { timeout: TIMEOUT_MS },
    async (phase, context) => {
      const lost = await loseAnswer(kind, context, { sent: SENT[phase], asks: false, fails: phase === "failed" });
      await lost.whole.store.append(lost.sessionId, [{ type: "message", message: { role: "user", content: "And?" } }]);
      lost.held.reset();
      const holder = (): Promise<unknown> => lost.whole.store.leaseOf(lost.sessionId);
      await expect.poll(holder, { timeout: 10_000 }).toBe(null);
      const facts = await factsOf(lost.whole.store, lost);
      expect(facts.filter((fact) => fact === `run-${phase}`)).toEqual([`run-${phase}`]);
      expect(facts.at(-1)).toBe(`run-${phase}`);
      expect((await lost.whole.store.head(lost.sessionId))?.openRuns).toEqual([]);
    },
  );
}
