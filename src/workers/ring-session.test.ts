import { expect, onTestFinished, test } from "vitest";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { inProcessBell } from "./in-process-bell.ts";
import { ringNext } from "./ring-session.ts";

async function openSession() {
  const [store, bell] = [openMemoryStore(), inProcessBell()];
  onTestFinished(() => bell.close());
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  return { manager, bell, sessionId, ring: () => ringNext({ store, bell, leaseMs: 1000 }, sessionId, { now: false }) };
}

test("a session is rung for soon where the lease that stood in the way has ended by now", async () => {
  const { bell, sessionId, ring } = await openSession();
  await ring();
  expect(await bell.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
  const heard = new Promise<string>((resolve) => void bell.listen(["helper"], async (session) => resolve(session)));
  expect(await heard).toBe(sessionId);
});

test("a session that is suspended is not rung for again and again", async () => {
  const { manager, bell, sessionId, ring } = await openSession();
  await manager.suspend(sessionId);
  await ring();
  expect(await bell.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });
});
