import { expect, test } from "vitest";
import { createAgent } from "../agent/agent.ts";
import { scripted } from "../models/index.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionManager } from "./session-manager.ts";

test("a claim that took longer than its lease holds has come too late, and is made again", async () => {
  let nowMs = Date.now();
  const store = openMemoryStore({ clock: () => new Date(nowMs) });
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  const lease = store.lease.bind(store);
  let leases = 0;
  store.lease = async (...args) => {
    const taken = await lease(...args);
    if (leases++ === 0) nowMs += 5_000;
    return taken;
  };
  const agent = createAgent({ name: "helper", prompt: "", model: scripted(["Done."]), builtInTools: false });
  const found = await manager.recover(sessionId, { helper: agent }, { leaseMs: 1_000 });
  await found?.run.synchronize();
  expect(leases).toBe(2);
  expect((await store.head(sessionId))?.openRuns).toEqual([]);
});
