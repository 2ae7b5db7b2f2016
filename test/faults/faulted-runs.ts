import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { calling, callOf, modelOf, saying } from "../sample-run.ts";
import { idle, phasesOf } from "../workers/fleet-support.ts";

const RUNS = 10;
/** How many rounds each run does before the fault; it ends after the fault. */
const ROUNDS_BEFORE = 2;

/** Starts runs with several rounds, each with an effect. */
async function startRuns(store: SessionStore) {
  const manager = new SessionManager({ store });
  const effects: string[] = [];
  const fault = { over: false };
  const note = defineTool({
    name: "note",
    description: "Notes a round.",
    parameters: { type: "object", properties: { round: { type: "integer" } }, required: ["round"] },
    execute: async ({ round }, { runId }) => {
      effects.push(`${runId} ${round}`);
      await pause(5);
      return "ok";
    },
  });
  const model = modelOf(async ({ messages }) => {
    await pause(5);
    const round = messages.filter(({ role }) => role === "assistant").length;
    return round < ROUNDS_BEFORE || !fault.over ? calling(callOf(`call-${round}`, "note", { round })) : saying("Done.");
  });
  const agents = [createAgent({ name: "helper", prompt: "", model, builtInTools: false, tools: [note] })];
  const queue = inProcessQueue();
  const worker = await startWorker({ manager, agents, queue, leaseMs: 2000, sweepMs: 500, onError: () => {} });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  const sessions: string[] = [];
  for (let run = 0; run < RUNS; run++) {
    const { sessionId } = await manager.create({ userId: `user-${run}` });
    await manager.request(sessionId, { agent: "helper", input: "Note it." });
    await queue.notify(sessionId, { runner: "helper" });
    sessions.push(sessionId);
  }
  return { sessions, effects, fault };
}

/** Fails unless all runs finish, and no effect happens twice, when something happens to their store in the middle. */
export async function expectFinished(store: SessionStore, causeFault: () => Promise<void>): Promise<void> {
  const { sessions, effects, fault } = await startRuns(store);
  const runsBeforeFault = (): number => effects.filter((effect) => effect.endsWith(` ${ROUNDS_BEFORE - 1}`)).length;
  await expect.poll(runsBeforeFault).toBe(RUNS);
  await causeFault();
  fault.over = true;
  for (const sessionId of sessions) await idle(store, sessionId, 60_000);
  const ends = await Promise.all(sessions.map(async (id) => (await phasesOf(store, id)).at(-1)));
  expect(ends).toEqual(sessions.map(() => "finished"));
  expect(new Set(effects).size).toBe(effects.length);
}
