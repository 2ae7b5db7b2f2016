import { expect, test } from "vitest";
import { createClient, type Fetch, type WireRunEvent } from "../../src/http/client/index.ts";
import { EventParser, type ParsedEvent } from "../../src/http/client/event-parser.ts";
import { scripted } from "../../src/models/index.ts";
import { callOf, calling, saying, toolOf } from "../sample-run.ts";
import { answering, gate, pausing } from "./runs-agents.ts";
import { ANN, allOf, logOf, nextOf, openRunServer, type RunServer } from "./runs-server.ts";
import { tokenOf } from "./server-support.ts";

const talkative = () =>
  answering(
    [calling(callOf("1", "look", { at: "the sea" })), pausing(["It ", "is ", "bl", "ue."], openGate())],
    [toolOf("look")],
  );

test("a run that was started goes on by itself, tells what happens, and stays readable when it has ended", async () => {
  const { client, store, sessionId } = await openRunServer({ agents: { helper: answering(["Hello."]) } });
  const run = await client.runs.start(sessionId, { input: "Hi." });
  expect(run).toMatchObject({ sessionId, agent: "helper", group: null, approvals: [], problem: null });
  const events = await allOf(client, run.runId);
  expect(events.map(({ type }) => type)).toEqual([
    "run-started",
    "round-started",
    "text-delta",
    "round-finished",
    "run-finished",
  ]);
  expect(await allOf(client, run.runId)).toEqual(events);
  expect(await client.runs.get(run.runId)).toMatchObject({ status: "finished", endedAt: expect.any(String) });
  expect((await client.runs.list(sessionId)).map(({ runId }) => runId)).toEqual([run.runId]);
  expect(await logOf(store, sessionId)).toEqual(["user: Hi.", "started", "assistant: Hello.", "finished"]);
  for await (const entry of store.read(sessionId)) {
    if (entry.type === "run") expect(entry.runId).toBe(run.runId);
  }
});

test("whoever leaves after any event and rejoins, while the run goes on or later, gets exactly the rest", async () => {
  const server = await openRunServer({ agents: { helper: talkative() } });
  const { runId } = await server.client.runs.start(server.sessionId, { input: "What colour is the sea?" });
  const whole = await readRaw(server, runId);
  expect(whole.length).toBeGreaterThan(10);
  for (const [index, { id }] of whole.entries()) {
    expect(await readRaw(server, runId, id)).toEqual(whole.slice(index + 1));
  }
  expect(whole.map(({ data }) => JSON.parse(data ?? ""))).toEqual(await allOf(server.client, runId));
});

test("a client whose connection is cut after every single event reads what one with a whole connection reads", async () => {
  const server = await openRunServer({ agents: { helper: talkative() } });
  let connections = 0;
  const cutting: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!url.endsWith("/events")) return response;
    connections += 1;
    return new Response(response.body?.pipeThrough(firstEvents(1)) ?? null, response);
  };
  const client = createClient({ url: server.url, token: tokenOf("ann"), fetch: cutting });
  const { runId } = await client.runs.start(server.sessionId, { input: "What colour is the sea?" });
  const expected = await allOf(server.client, runId);
  expect(await allOf(client, runId)).toEqual(expected);
  expect(connections).toBe(expected.length);
});

test("a reader that joins in the middle of an answer gets what was said before, then the rest as it comes", async () => {
  const pause = gate();
  const { client, sessionId } = await openRunServer({
    agents: { helper: answering([pausing(["a", "b", "c"], pause)]) },
  });
  const { runId } = await client.runs.start(sessionId, { input: "Spell." });
  const seen: WireRunEvent[] = [];
  const events = client.runs.events(runId);
  for await (const event of events) {
    seen.push(event);
    if (event.type === "text-delta" && event.text === "b") break;
  }
  expect(events.lastEventId).toBe("2.2");
  const rest = client.runs.events(runId, { lastEventId: events.lastEventId ?? "" });
  pause.open();
  for await (const event of rest) seen.push(event);
  expect(seen).toEqual(await allOf(client, runId));
  expect(seen.flatMap((event) => (event.type === "text-delta" ? event.text : []))).toEqual(["a", "b", "c"]);
});

test("an event id from the future is refused, and one that is the last has nothing after it", async () => {
  const server = await openRunServer({ agents: { helper: answering(["Hello."]) } });
  const { runId } = await server.client.runs.start(server.sessionId, { input: "Hi." });
  const whole = await readRaw(server, runId);
  for (const id of ["99.0", "1.7", "later", "-1.0"]) {
    const response = await ask(server, `/api/runs/${runId}/events`, { "last-event-id": id });
    expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/problem+json"]);
    expect(await response.json()).toMatchObject({ code: "EVENT_ID_UNKNOWN" });
  }
  const after = await ask(server, `/api/runs/${runId}/events`, { "last-event-id": whole.at(-1)?.id ?? "" });
  expect(after.status).toBe(204);
  const rest: WireRunEvent[] = [];
  for await (const event of server.client.runs.events(runId, { lastEventId: whole.at(-1)?.id ?? "" })) rest.push(event);
  expect(rest).toEqual([]);
});

test("a stream may not be kept by anyone on the way", async () => {
  const server = await openRunServer({ agents: { helper: answering(["Hello."]) } });
  const { runId } = await server.client.runs.start(server.sessionId, { input: "Hi." });
  const { headers, body } = await ask(server, `/api/runs/${runId}/events`);
  expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(headers.get("cache-control")).toBe("no-store");
  await body?.cancel();
});

test("how a run failed is told without what only the server should know", async () => {
  const secret = new Error("The key sk-123 was refused at /srv/keys.");
  const { client, sessionId, log } = await openRunServer({ agents: { helper: answering([secret]) } });
  const { runId } = await client.runs.start(sessionId, { input: "Hi." });
  const last = (await allOf(client, runId)).at(-1);
  expect(last).toMatchObject({
    type: "run-failed",
    error: { code: "INTERNAL", message: expect.stringMatching(/went wrong/) },
  });
  const view = await client.runs.get(runId);
  expect(view).toMatchObject({ status: "failed", problem: { code: "INTERNAL" } });
  expect(JSON.stringify([last, view])).not.toContain("sk-123");
  expect(log.some(({ error }) => error?.includes("sk-123"))).toBe(true);
});

test("runs of others, and of sessions that are not there, cannot be told from missing ones", async () => {
  const { client, as, sessionId } = await openRunServer({ agents: { helper: answering(["Hello.", "Bye."]) } });
  const { runId } = await client.runs.start(sessionId, { input: "Hi." });
  await allOf(client, runId);
  const bob = as("bob");
  await expect(bob.runs.get(runId)).rejects.toMatchObject({ code: "RUN_NOT_FOUND", status: 404 });
  await expect(bob.runs.abort(runId)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(allOf(bob, runId)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(bob.runs.list(sessionId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", status: 404 });
  await expect(bob.runs.start(sessionId, { input: "Mine." })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(bob.runs.recover(sessionId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(bob.runs.get("nowhere")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  expect(await as("root").runs.get(runId)).toMatchObject({ runId, status: "finished" });
});

test("what cannot be run is refused, and changes nothing", async () => {
  const agent = answering(["Hello."]);
  const { client, store, manager, sessionId } = await openRunServer({ agents: { helper: agent } });
  const start = (request: object) => client.runs.start(sessionId, { input: "Hi.", ...request });
  await expect(start({ agent: "nobody" })).rejects.toMatchObject({ code: "AGENT_NOT_FOUND", status: 404 });
  await expect(start({ model: "no/model" })).rejects.toMatchObject({ code: "MODEL_NOT_FOUND", status: 404 });
  await expect(start({ group: "crew" })).rejects.toMatchObject({ code: "GROUP_NOT_FOUND", status: 404 });
  await expect(start({ ifBusy: "push" })).rejects.toMatchObject({ code: "INVALID_REQUEST", status: 400 });
  await expect(start({ input: 7 })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  await manager.suspend(sessionId);
  await expect(start({})).rejects.toMatchObject({ code: "SESSION_SUSPENDED", status: 409 });
  await manager.close(sessionId);
  await expect(start({})).rejects.toMatchObject({ code: "SESSION_CLOSED", status: 409 });
  expect(await logOf(store, sessionId)).toEqual([]);
  expect(await client.runs.list(sessionId)).toEqual([]);
});

test("a model that is asked for takes the place of the agent's own", async () => {
  const { client, store, sessionId } = await openRunServer({
    agents: { helper: answering([]) },
    models: [{ ...scripted([saying("From another.")]), provider: "other", id: "one" }],
  });
  const { runId } = await client.runs.start(sessionId, { input: "Hi.", model: "other/one" });
  await nextOf(client, runId, "run-finished");
  expect(await logOf(store, sessionId)).toContain("assistant: From another.");
});

function openGate() {
  const opened = gate();
  opened.open();
  return opened;
}

function ask({ url }: RunServer, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${path}`, { headers: { ...ANN, ...headers } });
}

/** The events of a run as they are sent, after an id. */
async function readRaw(server: RunServer, runId: string, id: string | null = null): Promise<ParsedEvent[]> {
  const response = await ask(server, `/api/runs/${runId}/events`, id === null ? {} : { "last-event-id": id });
  return new EventParser().push(await response.text());
}

/** Lets so many events of a stream through, and ends it then. */
function firstEvents(count: number): TransformStream<Uint8Array, Uint8Array> {
  let [text, ended] = ["", false];
  const decoder = new TextDecoder();
  return new TransformStream({
    transform(chunk, controller) {
      if (ended) return;
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split("\n\n").slice(0, -1);
      if (blocks.length < count) return;
      ended = true;
      controller.enqueue(new TextEncoder().encode(`${blocks.slice(0, count).join("\n\n")}\n\n`));
      controller.terminate();
    },
  });
}
