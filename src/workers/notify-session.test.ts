import { expect, onTestFinished, test } from "vitest";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { inProcessQueue } from "./in-process-queue.ts";
import { notifyNext } from "./notify-session.ts";

async function openSession() {
  const [store, queue] = [openMemoryStore(), inProcessQueue()];
  onTestFinished(() => queue.close());
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  return {
    manager,
    queue,
    sessionId,
    notify: () => notifyNext({ store, queue, leaseMs: 1000 }, sessionId, { now: false }),
  };
}

test("a session is notified about soon if the lease that blocked it has ended by now", async () => {
  const { queue, sessionId, notify } = await openSession();
  await notify();
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
  const heard = new Promise<string>((resolve) => void queue.listen(["helper"], async (session) => resolve(session)));
  expect(await heard).toBe(sessionId);
});

test("a session that is suspended is not notified about again and again", async () => {
  const { manager, queue, sessionId, notify } = await openSession();
  await manager.suspend(sessionId);
  await notify();
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });
});
