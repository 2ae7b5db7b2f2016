import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { abandonRun } from "../agent/active-runs.ts";
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

test("a run with an output of a library is gone on with by the JSON Schema that its request has", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  const helperOf = (...replies: Parameters<typeof scripted>[0]) =>
    createAgent({ name: "helper", prompt: "", model: scripted(replies), builtInTools: false });
  const output = z.object({ at: z.iso.date().transform((day) => new Date(day)) });
  const run = manager.run(
    sessionId,
    helperOf(() => new Promise<never>(() => {})),
    "When?",
    { output, runId: "r" },
  );
  expectTypeOf(run.synchronize()).resolves.toHaveProperty("output").toEqualTypeOf<{ at: Date }>();
  await run.admitted;
  await abandonRun(run.id);
  const helper = helperOf('{"at": 5}', '{"at": "2026-01-02"}');
  const found = await manager.recover(sessionId, { helper });
  expect((await found?.run)?.output).toEqual({ at: "2026-01-02" });
  const request = manager.request(sessionId, { input: "?", group: "team", options: { output: { type: "object" } } });
  await expect(request).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining("group") });
});
