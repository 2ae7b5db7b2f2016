import { setTimeout as pause } from "node:timers/promises";
import { type Agent, createAgent, SessionManager } from "skein";
import { bullmqQueue, inProcessQueue, startWorker } from "skein/workers";
import { openFleetStore, requestRuns, RUNNER } from "./fleet-store.ts";
import type { WorkerInput, WorkerState } from "./worker-process.ts";

/** How many runs are waiting for this process's model. */
const asked = { now: 0, most: 0 };

/** Executes the requested runs, for `startWorkerProcess`, until the parent process has ended. */
export async function serveWorker({ url, prefix, queue: whose, concurrency, modelMs }: WorkerInput): Promise<never> {
  const manager = new SessionManager({ store: await openFleetStore(url, prefix) });
  const queue = whose === "own" ? inProcessQueue() : bullmqQueue({ url });
  const agents = [slowAgent(modelMs)];
  await startWorker({ manager, queue, agents, concurrency, maxRunsPerUser: concurrency, sweepMs: 0 });
  const answer = async (message: string | { readonly sessionIds: readonly string[] }): Promise<WorkerState | null> => {
    if (typeof message === "string") return readState();
    await requestRuns(manager, queue, message.sessionIds);
    return null;
  };
  process.on("message", (message: string) => void answer(message).then((reply) => process.send?.(reply)));
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
  return new Promise<never>(() => {});
}

function readState(): WorkerState {
  const { maxRSS } = process.resourceUsage();
  return { most: asked.most, peakBytes: maxRSS * 1024, residentBytes: process.memoryUsage.rss() };
}

/** An agent with a slow model. */
function slowAgent(modelMs: number): Agent {
  const complete = async () => {
    asked.now += 1;
    asked.most = Math.max(asked.most, asked.now);
    await pause(modelMs);
    asked.now -= 1;
    return { role: "assistant", content: "Done.", stopReason: "stop" } as const;
  };
  const model = { provider: "bench", id: "slow", complete };
  return createAgent({ name: RUNNER, prompt: "Talk.", model, builtInTools: false });
}
