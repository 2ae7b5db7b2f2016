import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { callOf, calling, nextEvent, toolOf } from "../../test/sample-run.ts";
import { abandonRun } from "../agent/active-runs.ts";
import { createAgent } from "../agent/agent.ts";
import type { SessionRun } from "../agent/session-run.ts";
import { scripted } from "../models/index.ts";
import type { Entry } from "../session/log/entry.ts";
import { inputIdOf } from "../session/log/open-runs.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionManager } from "./session-manager.ts";

test("a claim that took longer than its lease is too late, and is repeated", async () => {
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

test("a run with an output schema of a library is recovered with the JSON Schema in its request", async () => {
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

test("a request with several messages starts with an entry for each, with the requester as author", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  const messages = [
    { role: "user", content: "I am Ann." },
    { role: "assistant", content: "Hello, Ann." },
    { role: "user", content: "Who am I?" },
  ] as const;
  const request = { type: "run_request", id: "run:r", runId: "r", agent: "helper", messages } as const;
  await manager.store.append(sessionId, [request], { by: "bob" });
  const asked: unknown[] = [];
  const model = scripted([
    ({ messages: sent }) => {
      asked.push(...sent.map(({ content }) => content));
      return "Ann.";
    },
  ]);
  const helper = createAgent({ name: "helper", prompt: "", model, builtInTools: false });
  await (await manager.recover(sessionId, { helper }))?.run.synchronize();
  const entries: Entry[] = [];
  for await (const entry of manager.store.read(sessionId)) entries.push(entry);
  const rows = entries.flatMap((entry) => (entry.type === "message" ? [[entry.by, entry.message.content]] : []));
  expect(rows).toEqual([...messages.map(({ content }) => ["bob", content]), [undefined, "Ann."]]);
  expect(entries.filter(({ id }) => id === inputIdOf("r"))).toMatchObject([{ message: messages[2] }]);
  expect(asked.slice(-3)).toEqual(messages.map(({ content }) => content));
});

test("a request that was stored with the former name of ask is recovered with the same policy", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  const request = { type: "run_request", id: "run:r", runId: "r", agent: "helper", input: "Look." } as const;
  await manager.store.append(sessionId, [{ ...request, options: { unasked: "nothing" } }]);
  const look = toolOf("look", () => "seen", { effects: "reads" });
  const model = scripted([calling(callOf("1", "look")), "Done."]);
  const helper = createAgent({ name: "helper", prompt: "", model, tools: [look] });
  const found = await manager.recover(sessionId, { helper });
  const run = found?.run as SessionRun;
  expect(await nextEvent(run, "approval-required")).toMatchObject({ approval: { name: "look" } });
  run.abort();
});

test("recover takes a list of agents, and refuses what is no agent", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: "helper", input: "Hi." });
  const agentOf = (name: string) =>
    createAgent({ name, prompt: "", model: scripted([`${name} has answered.`]), builtInTools: false });
  const helper = agentOf("helper");
  for (const wrong of [helper, { helper: {} }, [{}], [null], new Map([["helper", "helper"]])]) {
    const refused = manager.recover(sessionId, wrong as never);
    await expect(refused).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
  await expect(manager.recover(sessionId, [agentOf("other")])).rejects.toMatchObject({ code: "AGENT_NOT_FOUND" });
  const found = await manager.recover(sessionId, [agentOf("other"), helper]);
  expect((await found?.run)?.text()).toBe("helper has answered.");
});
