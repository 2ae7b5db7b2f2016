import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { createAgent } from "../../src/agent/agent.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { bullmqQueue, startWorker } from "../../src/workers/index.ts";
import { measureLag } from "../measure-lag.ts";
import { postgresUrl } from "../postgres-server.ts";
import { modelOf, saying } from "../sample-run.ts";
import { skipBecause } from "../skip.ts";
import { idle, phasesOf } from "../workers/fleet-support.ts";
import { startProxy } from "./tcp-proxy.mjs";

const LEASE_MS = 4000;
/** The documented limit within which another worker takes over a run. */
const TAKEOVER_MS_MAX = LEASE_MS + 1000;

/** Opens the same store over a proxy (`cut`) and directly (`whole`), with a queue on Redis. */
async function openBoth(kind: "redis" | "postgres", context: TestContext) {
  const missing = redisMissing();
  if (missing !== null) skipBecause(context, missing);
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const storeUrl = kind === "redis" ? redis.url : await postgresUrl();
  const proxy = await startProxy(Number(new URL(storeUrl).port));
  onTestFinished(() => proxy.close());
  const open = async (url: string) => {
    const store = await openStore(url);
    onTestFinished(() => store.close());
    return new SessionManager({ store });
  };
  const queue = () => {
    const made = bullmqQueue({ url: redis.url });
    onTestFinished(() => made.close());
    return made;
  };
  return { proxy, queue, cut: await open(proxy.through(storeUrl)), whole: await open(storeUrl) };
}

let tests = 0;

/** Starts a worker whose agent answers when `answer` resolves. */
async function work(
  agent: string,
  manager: SessionManager,
  queue: ReturnType<typeof bullmqQueue>,
  answer: () => Promise<void>,
) {
  const model = modelOf(async (_request, { signal } = {}) => {
    await Promise.race([answer(), new Promise((_, reject) => signal?.addEventListener("abort", reject))]);
    return saying("Done.");
  });
  const agents = [createAgent({ name: agent, prompt: "", model, builtInTools: false })];
  const worker = await startWorker({ manager, agents, queue, leaseMs: LEASE_MS, sweepMs: 60_000, onError: () => {} });
  onTestFinished(() => worker.close({ drainMs: 0 }));
}

describe.for(["redis", "postgres"] as const)("a worker whose store on %s", (kind) => {
  test.for(["stops answering", "refuses connections"] as const)(
    "%s loses its runs to another worker in time, claims no new runs, and works again afterwards",
    async (how, context) => {
      const { proxy, queue, cut, whole } = await openBoth(kind, context);
      const [notifying, held, agent] = [queue(), { count: 0 }, `helper-${++tests}`];
      const ask = async (): Promise<string> => {
        const { sessionId } = await whole.create({ userId: "ann" });
        await whole.request(sessionId, { agent, input: "Go on." });
        await notifying.notify(sessionId, { runner: agent });
        return sessionId;
      };
      await work(agent, cut, queue(), () => new Promise(() => void held.count++));
      const before = [await ask(), await ask()];
      await expect.poll(() => held.count).toBe(before.length);
      await work(agent, whole, queue(), async () => {});
      const allowed = measureLag(() => whole.store.ping());
      if (how === "stops answering") proxy.silence();
      else await proxy.refuse();
      const since = performance.now();
      const after = await Promise.all(Array.from({ length: 8 }, ask));
      for (const sessionId of [...before, ...after]) await idle(whole.store, sessionId, 80_000);
      expect(performance.now() - since).toBeLessThan(allowed(TAKEOVER_MS_MAX));
      for (const sessionId of before)
        expect(await phasesOf(whole.store, sessionId)).toEqual(["started", "started", "finished"]);
      for (const sessionId of after) expect((await phasesOf(whole.store, sessionId)).at(-1)).toBe("finished");
      await proxy.heal();
      const count = held.count;
      // Of many runs, the worker that was cut off claims some again.
      const claimsAgain = async (): Promise<boolean> => {
        await ask();
        await pause(50);
        return held.count > count;
      };
      await expect.poll(claimsAgain).toBe(true);
    },
  );
});
