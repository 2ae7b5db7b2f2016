import { metrics, type ObservableCallback } from "@opentelemetry/api";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { gate, pausing, answering } from "../../test/http/runs-agents.ts";
import { idle } from "../../test/workers/fleet-support.ts";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { inProcessQueue } from "./in-process-queue.ts";
import { startWorker } from "./start-worker.ts";

/** The values that the configured meter received, and the callback that reports them. */
const told: { readonly name: string; readonly value: number }[] = [];
const observed = new Map<string, Set<ObservableCallback>>();

beforeAll(() => {
  const meter = metrics.getMeterProvider().getMeter("none");
  const counting = Object.create(meter) as typeof meter;
  counting.createCounter = (name) => ({ add: (value) => void told.push({ name, value }) });
  counting.createHistogram = (name) => ({ record: (value) => void told.push({ name, value }) });
  counting.createObservableGauge = (name) => {
    const callbacks = new Set<ObservableCallback>();
    observed.set(name, callbacks);
    return {
      addCallback: (callback) => void callbacks.add(callback as ObservableCallback),
      removeCallback: (callback) => void callbacks.delete(callback as ObservableCallback),
    };
  };
  metrics.setGlobalMeterProvider({ getMeter: () => counting });
});

afterAll(() => metrics.disable());

/** The waiting, running and asking runs, as the meter reads them. */
async function read(): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const [name, callbacks] of observed) {
    const result = { observe: (value: number) => void (values[name.replace("skein.runs.", "")] = value) };
    for (const callback of callbacks) await callback(result as unknown as Parameters<ObservableCallback>[0]);
  }
  return values;
}

test("a worker measures waiting, running and asking runs, the delay of requests, and takeovers", async () => {
  const store = openMemoryStore();
  const [manager, queue, hold] = [new SessionManager({ store }), inProcessQueue(), gate()];
  const agents = [answering([pausing(["a", "b"], hold), "Done.", "Done."], [], "helper")];
  const worker = await startWorker({ manager, queue, agents, concurrency: 1, sweepMs: 0 });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  const ask = async () => {
    const { sessionId } = await manager.create({ userId: "ann" });
    return manager.request(sessionId, { agent: "helper", input: "Hi." });
  };
  const notify = (sessionId: string): Promise<void> => queue.notify(sessionId, { runner: "helper" });
  expect(await read()).toEqual({ waiting: 0, active: 0, asking: 0 });
  const [first, second, died, parked] = [await ask(), await ask(), await ask(), await ask()];
  await store.append(parked.sessionId, [
    { type: "run", runId: parked.runId, phase: "started" },
    { id: "ask", type: "approval", runId: parked.runId, callId: "1" },
    { type: "run_parked", runId: parked.runId, questions: [{ callId: "1", question: "ask" }] },
  ]);
  await store.append(died.sessionId, [
    { type: "run", runId: died.runId, phase: "started" },
    { id: `run:${died.runId}/input`, type: "message", message: { role: "user", content: "Hi." } },
  ]);
  await notify(first.sessionId);
  await expect.poll(() => worker.view.active).toBe(1);
  expect(await read()).toMatchObject({ active: 1, asking: 1 });
  expect((await read()).waiting).toBeGreaterThanOrEqual(1);
  expect(told).toEqual([{ name: "skein.runs.start_delay", value: expect.any(Number) }]);
  hold.open();
  for (const { sessionId } of [second, died]) await notify(sessionId);
  for (const { sessionId } of [first, second, died]) await idle(store, sessionId);
  expect(await read()).toEqual({ waiting: 0, active: 0, asking: 1 });
  const delays = told.filter(({ name }) => name === "skein.runs.start_delay");
  expect(delays).toHaveLength(2);
  for (const { value } of delays) expect(value).toBeGreaterThanOrEqual(0);
  expect(told.filter(({ name }) => name === "skein.runs.takeovers")).toEqual([
    { name: "skein.runs.takeovers", value: 1 },
  ]);
  await worker.close();
  expect(await read()).toEqual({});
});
