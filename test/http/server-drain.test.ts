import { describe, expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { createClient } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import { type ScriptedReply, scripted } from "../../src/models/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { nextOf } from "./runs-server.ts";
import { startTestServer, type TestServer, TOKENS } from "./server-support.ts";

/** A server with one agent that is running in a session. */
async function startBusy(
  store: SessionStore,
  reply: ScriptedReply,
): Promise<{ server: TestServer; sessionId: string }> {
  const agents = [createAgent({ name: "helper", prompt: "Help.", model: scripted([reply]), retry: { attempts: 1 } })];
  const server = await startTestServer({ store, agents });
  const sessionId: string = (await server.call("POST", "/api/sessions", {})).body.header.id;
  const run = await server.call("POST", `/api/sessions/${sessionId}/runs`, { input: "Hi", agent: "helper" });
  expect(run.status).toBe(202);
  await expect
    .poll(async () => (await server.call("GET", `/api/sessions/${sessionId}`)).body.running)
    .toEqual({
      runId: run.body.runId,
    });
  return { server, sessionId };
}

async function said(store: SessionStore, sessionId: string): Promise<string[]> {
  const words: string[] = [];
  for await (const entry of store.read(sessionId)) {
    if (entry.type === "message") words.push(String(entry.message.content));
    if (entry.type === "run") words.push(entry.phase);
  }
  return words;
}

describe("closing a server", () => {
  test("accepts no new connections, ends event streams, and waits for a run", async () => {
    await using store = openMemoryStore();
    let finish = (_text: string): void => {};
    const answer = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const { server, sessionId } = await startBusy(store, () => answer);
    const watch = await fetch(`${server.url}/api/sessions/${sessionId}/watch?after=-1`);
    expect(watch.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const closed = server.server.close({ drainMs: 20_000 });
    // The stream ends while the run is still active.
    await watch.text();
    await expect(fetch(`${server.url}/api/me`)).rejects.toThrow();
    expect(await said(store, sessionId)).not.toContain("finished");
    finish("Done in time.");
    await closed;
    expect((await said(store, sessionId)).slice(-2)).toEqual(["Done in time.", "finished"]);
  });

  test("refuses a run with a status for shutdown, which is not logged as an error", async () => {
    await using store = openMemoryStore();
    let finish = (_text: string): void => {};
    const answer = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const { server, sessionId } = await startBusy(store, () => answer);
    const closed = server.server.close({ drainMs: 20_000 });
    const request = new Request(`${server.url}/api/sessions/${sessionId}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "Me too", ifBusy: "enqueue" }),
    });
    const refused = await server.server.fetch(request);
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: "DRAINING" }]);
    expect(server.log.at(-1)).toMatchObject({ level: "info", status: 503 });
    finish("Done.");
    await closed;
  });

  test("aborts a run that takes too long, and another server recovers it", async () => {
    await using store = openMemoryStore();
    const { server, sessionId } = await startBusy(store, () => new Promise<string>(() => {}));
    await server.server.close({ drainMs: 20 });
    expect(await said(store, sessionId)).not.toContain("finished");
    const agents = [createAgent({ name: "helper", prompt: "Help.", model: scripted(["Gone on."]) })];
    await using _next = await startTestServer({ store, agents });
    await expect.poll(() => said(store, sessionId)).toContain("Gone on.");
  });

  test("parks a run that waits for approval at once, and another server continues it after the answer", async () => {
    await using store = openMemoryStore();
    const wiped: unknown[] = [];
    const wipe = toolOf("wipe", (given) => wiped.push(given), { needsApproval: () => true });
    const agentsSaying = (...replies: readonly ScriptedReply[]) => [
      createAgent({ name: "helper", prompt: "Help.", model: scripted(replies), tools: [wipe], builtInTools: false }),
    ];
    const server = await startTestServer({ store, agents: agentsSaying(calling(callOf("c", "wipe", {}))) });
    const client = createClient({ url: server.url });
    const sessionId = (await client.sessions.create({})).header.id;
    const run = await client.runs.start(sessionId, { input: "Hi", agent: "helper" });
    const { approval } = await nextOf(client, run, "approval-required");
    // Longer than the test may take.
    await server.server.close({ drainMs: 600_000 });
    expect((await store.head(sessionId))?.openRuns).toMatchObject([{ state: "parked" }]);
    await using next = await startTestServer({ store, agents: agentsSaying("Gone on.") });
    expect(wiped).toEqual([]);
    await createClient({ url: next.url }).runs.approve(sessionId, approval.question);
    await expect.poll(() => said(store, sessionId)).toContain("Gone on.");
    expect(wiped).toEqual([{}]);
  });

  test("can be called twice, or before listen", async () => {
    await using store = openMemoryStore();
    const idle = await createServer({ store });
    await idle.close();
    const server = await createServer({ store });
    expect(await server.listen()).toBe(server.url);
    await Promise.all([server.close(), server.close({ drainMs: 5 })]);
    await expect(fetch(server.url)).rejects.toThrow();
    expect((await store.list()).items).toEqual([]);
  });
});

test("a port in use and a foreign host are refused with advice", async () => {
  await using first = await startTestServer();
  await using store = openMemoryStore();
  const second = await createServer({ store, port: Number(new URL(first.url).port) });
  await expect(second.listen()).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringMatching(/another program uses the port, so choose another one\.$/),
  });
  // An address reserved for documentation belongs to no machine.
  const elsewhere = await createServer({ store, tokens: TOKENS, host: "203.0.113.1" });
  await expect(elsewhere.listen()).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: "The server cannot listen on 203.0.113.1:0; this machine has no such address, so check the host.",
  });
});

test("a server answers without the network, by the same rules", async () => {
  await using store = openMemoryStore();
  await using server = await createServer({ store });
  expect(await (await server.fetch(new Request("http://localhost/api/me"))).json()).toEqual({
    userId: "local",
    admin: true,
    may: { approve: true, run: true, files: true },
  });
  expect((await server.fetch(new Request("http://evil.example/api/me"))).status).toBe(403);
});
