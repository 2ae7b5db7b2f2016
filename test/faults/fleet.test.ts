import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { type RedisServer, redisMissing, startRedis } from "../../scripts/redis.mjs";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { createClient, type WireRunEvent } from "../../src/http/client/index.ts";
import { createServer, type SkeinServer } from "../../src/http/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { textOf } from "../../src/session/message.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { bullmqBell, startWorker } from "../../src/workers/index.ts";
import { answering, type Gate, gate, pausing } from "../http/runs-agents.ts";
import { TOKENS, tokenOf } from "../http/server-support.ts";
import { callOf, calling, modelOf, saying, toolOf } from "../sample-run.ts";
import { skipBecause } from "../skip.ts";
import { fleetStores, type Harm, runFleetTrial } from "../torture/fleet-trial.mjs";

const DURATION_MS_MAX = 60_000;
const TIMEOUT_MS = 240_000;

/** What went wrong in a fleet of processes that people use meanwhile. */
async function violationsIn(context: TestContext, store: string, strikesMin: number, harm: Harm) {
  const missing = redisMissing();
  if (store === "redis" && missing !== null) skipBecause(context, missing);
  const limits = { durationMs: DURATION_MS_MAX, runsMin: 12, strikesMin, sessionsAtOnce: 6, harm };
  const { violations, effects, kills, freezes, restarts } = await runFleetTrial(store, limits);
  expect(effects).toBeGreaterThan(0);
  expect(kills + freezes + restarts).toBeGreaterThanOrEqual(strikesMin);
  return violations;
}

test.for(fleetStores)(
  "a fleet on %s whose members are killed and frozen ends every run, does nothing twice and tells everything once",
  { timeout: TIMEOUT_MS },
  async (store, context) => {
    expect(await violationsIn(context, store, 3, { to: "random" })).toEqual([]);
  },
);

test("a fleet that is restarted one by one under load refuses no request, interrupts no call and loses no run", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  expect(await violationsIn(context, "redis", 5, { to: "restart" })).toEqual([]);
});

describe("a bell and a store on one Redis", () => {
  const shared = async (): Promise<RedisServer> => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    return redis;
  };
  const fleetTest = (title: string, run: (redis: RedisServer) => Promise<void>): void =>
    test(title, { timeout: TIMEOUT_MS }, async (context) => {
      const missing = redisMissing();
      if (missing !== null) skipBecause(context, missing);
      await run(await shared());
    });

  fleetTest("let another user's run begin while one user's thousand wait for those that have begun", async (redis) => {
    const [started, hold] = [[] as string[], gate()];
    onTestFinished(() => hold.open());
    const fleet = await openFleet(redis, [noting(started, hold)]);
    await fleet.startWorker();
    await fleet.ask("ann", 1000);
    await expect.poll(() => started.length, { timeout: DURATION_MS_MAX }).toBe(10);
    await fleet.ask("bob", 1);
    await expect.poll(() => started, { timeout: DURATION_MS_MAX }).toContain("bob");
    expect(started.indexOf("bob")).toBeLessThan(20);
  });

  fleetTest("let another user's run begin among the first when workers find hundreds before it", async (redis) => {
    const started: string[] = [];
    const fleet = await openFleet(redis, [noting(started)]);
    await fleet.ask("ann", 300);
    await fleet.ask("bob", 1);
    await fleet.startWorker();
    await expect.poll(() => started, { timeout: DURATION_MS_MAX }).toContain("bob");
    expect(started.indexOf("bob")).toBeLessThan(10);
  });

  fleetTest(
    "let a run be started on one server, followed on a second, approved on a third, cancelled on a fourth",
    async (redis) => {
      const paid: string[] = [];
      const pay = toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, { needsApproval: () => true });
      const hold = gate();
      onTestFinished(() => hold.open());
      const payer = answering([calling(callOf("1", "pay")), pausing(["Paid", " all."], hold)], [pay], "payer");
      const fleet = await openFleet(redis, [payer]);
      await fleet.startWorker();
      const [one, two, three, four] = await Promise.all([fleet.serve(), fleet.serve(), fleet.serve(), fleet.serve()]);
      const { header } = await one.sessions.create();
      const { runId } = await one.runs.start(header.id, { input: "Pay." });
      const seen: WireRunEvent["type"][] = [];
      for await (const event of two.runs.events(header.id, runId)) {
        seen.push(event.type);
        if (event.type === "approval-required") await three.runs.approve(header.id, event.approval.question);
        if (event.type === "tool-finished") await four.runs.cancel(header.id, runId, { reason: "Enough." });
      }
      expect(seen.at(-1)).toBe("run-failed");
      expect(paid).toEqual(["1"]);
      for (const client of [one, two, three, four]) {
        expect(await client.runs.get(header.id, runId)).toMatchObject({ status: "cancelled" });
      }
    },
  );
});

/** An agent that notes who asks, and answers once it may. */
function noting(started: string[], hold?: Gate): Agent {
  const model = modelOf(async ({ messages }) => {
    started.push(textOf(messages.at(-1)?.content ?? null));
    await hold?.opened;
    return saying("Done.");
  });
  return createAgent({ name: "helper", prompt: "", model, builtInTools: false });
}

/** Workers and servers of this process that have nothing in common but their Redis, all with default settings. */
async function openFleet({ url }: RedisServer, agents: readonly Agent[]) {
  const openManager = async (): Promise<SessionManager> => {
    const store = await openRedisStore({ url });
    onTestFinished(() => store.close());
    return new SessionManager({ store, config: { maxSessionsPerUser: 10_000 } });
  };
  const openBell = () => {
    const bell = bullmqBell({ url });
    onTestFinished(() => bell.close());
    return bell;
  };
  const openServer = async (): Promise<SkeinServer> => {
    const limits = { rate: null };
    const init = { manager: await openManager(), agents, bell: openBell(), tokens: TOKENS, limits };
    const server = await createServer(init);
    onTestFinished(() => server.close({ drainMs: 0 }));
    return server;
  };
  const clientOf = async (server: SkeinServer, userId: string) =>
    createClient({ url: await server.listen(), token: tokenOf(userId) });
  const first = await openServer();
  const listening = await first.listen();
  return {
    async startWorker(): Promise<void> {
      const worker = await startWorker({ manager: await openManager(), agents, bell: openBell() });
      onTestFinished(() => worker.close({ drainMs: 0 }));
    },
    /** Lets a user ask for so many runs, each in a session of its own. */
    async ask(userId: string, count: number): Promise<void> {
      const client = createClient({ url: listening, token: tokenOf(userId) });
      const askOne = async (): Promise<void> => {
        const { header } = await client.sessions.create();
        await client.runs.start(header.id, { input: userId });
      };
      for (let left = count; left > 0; left -= 20) {
        await Promise.all(Array.from({ length: Math.min(left, 20) }, askOne));
      }
    },
    serve: async () => clientOf(await openServer(), "ann"),
  };
}
