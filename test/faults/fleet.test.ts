import { expect, onTestFinished, type TestContext, test } from "vitest";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { createAgent } from "../../src/agent/agent.ts";
import { createClient } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { textOf } from "../../src/session/message.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { bullmqQueue, startWorker } from "../../src/workers/index.ts";
import { TOKENS, tokenOf } from "../http/server-support.ts";
import { modelOf, saying } from "../sample-run.ts";
import { skipBecause } from "../skip.ts";
import { fleetStores, type Harm, runFleetTrial } from "../torture/fleet-trial.mjs";

/**
 * A trial ends after a number of runs and strikes, and starts up to a dozen processes, which takes minutes on a busy machine. Each
 * of its steps has a time limit of its own.
 */
const TIMEOUT_MS = 900_000;
/** The long form is `npm run torture -- --kind fleet --minutes 10`. */
const SHORT_MS = 8000;

/** The failures of a fleet of processes under load. */
async function violationsIn(context: TestContext, store: string, strikesMin: number, harm: Harm) {
  const missing = redisMissing();
  if ((store === "redis" || harm.emptyQueue === true) && missing !== null) skipBecause(context, missing);
  const limits = { durationMs: TIMEOUT_MS, runsMin: 12, strikesMin, sessionsAtOnce: 4, harm };
  const { violations, effects, kills, freezes, restarts } = await runFleetTrial(store, limits);
  expect(effects).toBeGreaterThan(0);
  expect(kills + freezes + restarts).toBeGreaterThanOrEqual(strikesMin);
  return violations;
}

test.for(fleetStores)(
  "a fleet on %s whose members are killed and frozen ends every run, repeats no effect and sends every event once",
  { timeout: TIMEOUT_MS },
  async (store, context) => {
    expect(await violationsIn(context, store, 3, { to: "random" })).toEqual([]);
  },
);

test("a queue that is emptied when a worker has just died delays runs and loses none", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  expect(await violationsIn(context, "postgres", 2, { to: "random", emptyQueue: true })).toEqual([]);
});

test("a fleet whose members are cut off, and whose store and queue are restarted and emptied, loses, fails and doubles nothing", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  const missing = redisMissing();
  if (missing !== null) skipBecause(context, missing);
  const limits = { durationMs: SHORT_MS, runsMin: Number.MAX_SAFE_INTEGER, strikesMin: 0, sessionsAtOnce: 4 };
  const trial = await runFleetTrial("postgres and redis", { ...limits, sweepsSoon: true, harm: { to: "servers" } });
  expect(trial.effects).toBeGreaterThan(0);
  expect(trial["server faults"] + trial.cuts + trial.kills + trial.freezes).toBeGreaterThan(0);
  expect(trial.violations).toEqual([]);
});

test("a fleet that is restarted one by one under load refuses no request, interrupts no call and loses no run", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  expect(await violationsIn(context, "redis", 4, { to: "restart" })).toEqual([]);
});

test("a user's only run is among the first ten that start on Redis, although another user requested a hundred runs before it", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  const missing = redisMissing();
  if (missing !== null) skipBecause(context, missing);
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const store = await openRedisStore({ url: redis.url });
  onTestFinished(() => store.close());
  const queue = bullmqQueue({ url: redis.url });
  onTestFinished(() => queue.close());
  const begun: string[] = [];
  const model = modelOf(async ({ messages }) => {
    begun.push(textOf(messages.at(-1)?.content ?? null));
    return saying("Done.");
  });
  const agents = [createAgent({ name: "helper", prompt: "", model, builtInTools: false })];
  const manager = new SessionManager({ store, config: { maxSessionsPerUser: 200 } });
  const server = await createServer({ manager, agents, queue, tokens: TOKENS, limits: { rate: null } });
  onTestFinished(() => server.close({ drainMs: 0 }));
  const url = await server.listen();
  const ask = async (userId: string): Promise<void> => {
    const { sessionId } = await manager.create({ userId });
    await createClient({ url, token: tokenOf(userId) }).runs.start(sessionId, { input: userId });
  };
  // Sequential at first: concurrent requests may count the same number of earlier runs.
  for (let asked = 0; asked < 20; asked++) await ask("ann");
  for (let from = 20; from < 100; from += 20) await Promise.all(Array.from({ length: 20 }, () => ask("ann")));
  await ask("bob");
  // Of runs that start concurrently, any may start last.
  const worker = await startWorker({ manager, agents, queue, concurrency: 4 });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  await expect.poll(() => begun).toContain("bob");
  expect(begun.indexOf("bob")).toBeLessThan(10);
});
