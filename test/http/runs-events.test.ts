import { expect, test } from "vitest";
import { createClient, type Fetch, type WireRunEvent } from "../../src/http/client/index.ts";
import { EventParser, type ParsedEvent } from "../../src/http/client/event-parser.ts";
import type { ModelDelta } from "../../src/agent/model/model.ts";
import { type ScriptedReply, scripted } from "../../src/models/index.ts";
import type { JsonObject } from "../../src/internal/json.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { callOf, calling, saying, toolOf } from "../sample-run.ts";
import { answering, type Gate, gate, pausing } from "./runs-agents.ts";
import { ANN, allOf, lasting, logOf, nextOf, openRunServer, type RunName, type RunServer } from "./runs-server.ts";
import { tokenOf } from "./server-support.ts";

const talkative = () =>
  answering(
    [calling(callOf("1", "look", { at: "the sea" })), pausing(["It ", "is ", "bl", "ue."], openGate())],
    [toolOf("look")],
  );

test("a started run continues without a reader, emits events, and stays readable after its end", async () => {
  const said = gate();
  const { client, store, sessionId } = await openRunServer({
    agents: { helper: answering([pausing(["Hello.", ""], said)]) },
  });
  const run = await client.runs.start(sessionId, { input: "Hi." });
  expect(run).toMatchObject({
    sessionId,
    agent: "helper",
    group: null,
    questions: [],
    output: null,
    problem: null,
    by: "ann",
    userId: "ann",
  });
  expect(await nextOf(client, run, "text-delta")).toMatchObject({ text: "Hello." });
  const reading = allOf(client, run);
  const last = nextOf(client, run, "text-delta");
  await last.then(said.open);
  const events = await reading;
  expect(events.map(({ type }) => type)).toEqual([
    "run-started",
    "round-started",
    "text-delta",
    "text-delta",
    "round-finished",
    "run-finished",
  ]);
  expect(lasting(await allOf(client, run))).toEqual(lasting(events));
  expect(await client.runs.get(sessionId, run.runId)).toMatchObject({
    status: "finished",
    endedAt: expect.any(String),
  });
  expect((await client.runs.ofSession(sessionId)).map(({ runId }) => runId)).toEqual([run.runId]);
  expect(await logOf(store, sessionId)).toEqual(["user: Hi.", "started", "assistant: Hello.", "finished"]);
  for await (const entry of store.read(sessionId)) {
    if (entry.type === "run") expect(entry.runId).toBe(run.runId);
  }
});

test("a run requested with a JSON Schema ends with a value, in its events and its view", async () => {
  const { client, sessionId, store } = await openRunServer({ agents: { helper: answering(["{}", '{"prime":97}']) } });
  const output = { type: "object", properties: { prime: { type: "integer" } }, required: ["prime"] };
  const run = await client.runs.start(sessionId, { input: "Name a prime.", output });
  expect((await allOf(client, run)).at(-1)).toMatchObject({ type: "run-finished", output: { prime: 97 } });
  expect(await client.runs.get(sessionId, run.runId)).toMatchObject({ status: "finished", output: { prime: 97 } });
  const before = await logOf(store, sessionId);
  const refused = (wrong: JsonObject, more = {}) =>
    client.runs.start(sessionId, { input: "?", output: wrong, ...more });
  await expect(refused({ type: "strng" })).rejects.toMatchObject({ code: "INVALID_OPTION", status: 400 });
  const slow = { properties: { a: { items: { type: "string", pattern: "(a+)+$" } } } };
  await expect(refused(slow)).rejects.toMatchObject({ code: "INVALID_REQUEST", status: 400 });
  expect(await logOf(store, sessionId)).toEqual(before);
});

test("a reader that leaves after any event and rejoins after the end gets exactly the remaining recorded events", async () => {
  const server = await openRunServer({ agents: { helper: talkative() } });
  const run = await server.client.runs.start(server.sessionId, { input: "What colour is the sea?" });
  const whole = await readRaw(server, run);
  expect(whole.length).toBeGreaterThan(3);
  for (const [index, { id }] of whole.entries()) {
    const rest = whole.slice(index + 1).map(eventOf);
    expect(lasting((await readRaw(server, run, id)).map(eventOf))).toEqual(lasting(rest));
  }
});

test("a client whose connection is cut after every event misses and repeats nothing during the run", async () => {
  const steps = Array.from({ length: 7 }, gate);
  const { url, sessionId } = await openRunServer({ agents: { helper: answering([stepping(steps)]) } });
  let connections = 0;
  const cutting: Fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!input.endsWith("/events")) return response;
    connections += 1;
    return new Response(response.body?.pipeThrough(firstEvents(1)) ?? null, response);
  };
  const client = createClient({ url, token: tokenOf("ann"), fetch: cutting });
  const run = await client.runs.start(sessionId, { input: "Count." });
  const seen: string[] = [];
  let next = 0;
  for await (const event of client.runs.events(sessionId, run.runId)) {
    seen.push(event.type === "text-delta" ? event.text : event.type);
    if (event.type === "round-started" || event.type === "text-delta") steps[next++]?.open();
  }
  expect(seen).toEqual([
    ...["run-started", "round-started", "0", "1", "2", "3", "4", "5"],
    ...["round-finished", "run-finished"],
  ]);
  expect(connections).toBe(seen.length);
});

test("a reader that joins in the middle of an answer gets the text so far, then the rest as it comes", async () => {
  const pause = gate();
  const { client, sessionId } = await openRunServer({
    agents: { helper: answering([pausing(["a", "b", "c"], pause)]) },
  });
  const run = await client.runs.start(sessionId, { input: "Spell." });
  const seen: WireRunEvent[] = [];
  const events = client.runs.events(sessionId, run.runId);
  for await (const event of events) {
    seen.push(event);
    if (event.type === "text-delta" && event.text === "b") break;
  }
  // The entries before: the request, the input, the instructions, the setup, and the start.
  expect(events.lastEventId).toBe("4.1.3");
  const rest = client.runs.events(sessionId, run.runId, { lastEventId: events.lastEventId ?? "" });
  // Another reader that joins gets the same by then.
  const joined = nextOf(client, run, "text-delta").then(pause.open);
  for await (const event of rest) seen.push(event);
  await joined;
  expect(lasting(seen)).toEqual(lasting(await allOf(client, run)));
  expect(seen.flatMap((event) => (event.type === "text-delta" ? event.text : []))).toEqual(["a", "b", "c"]);
});

test("an event id from the future is refused, and one that is the last has nothing after it", async () => {
  const server = await openRunServer({ agents: { helper: answering(["Hello."]) } });
  const { client, sessionId } = server;
  const run = await client.runs.start(sessionId, { input: "Hi." });
  const whole = await readRaw(server, run);
  const last = whole.at(-1)?.id ?? "";
  const [seq, claim] = last.split(".").map(Number) as [number, number];
  for (const id of [`${seq + 1}.${claim}.0`, `${seq}.${claim + 1}.0`, "9.0", "later", "-1.0.0", ""]) {
    const response = await ask(server, run, { "last-event-id": id });
    expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/problem+json"]);
    expect(await response.json()).toMatchObject({ code: "EVENT_ID_UNKNOWN" });
  }
  expect((await ask(server, run, { "last-event-id": last })).status).toBe(204);
  const rest: WireRunEvent[] = [];
  for await (const event of client.runs.events(sessionId, run.runId, { lastEventId: last })) rest.push(event);
  expect(rest).toEqual([]);
});

test("a stream may not be kept by anyone on the way", async () => {
  const server = await openRunServer({ agents: { helper: answering(["Hello."]) } });
  const run = await server.client.runs.start(server.sessionId, { input: "Hi." });
  const { headers, body } = await ask(server, run);
  expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(headers.get("cache-control")).toBe("no-store");
  await body?.cancel();
});

test("the error of a run reveals nothing that only the server should know", async () => {
  const secret = new Error("The key sk-123 was refused at /srv/keys.");
  const { client, sessionId, log } = await openRunServer({ agents: { helper: answering([secret]) } });
  const run = await client.runs.start(sessionId, { input: "Hi." });
  const last = (await allOf(client, run)).at(-1);
  expect(last).toMatchObject({
    type: "run-failed",
    error: { code: "INTERNAL", message: "Internal error; the server's log has the details." },
  });
  const view = await client.runs.get(sessionId, run.runId);
  expect(view).toMatchObject({ status: "failed", problem: { code: "INTERNAL" } });
  expect(JSON.stringify([last, view])).not.toContain("sk-123");
  expect(log.some(({ error }) => error?.includes("sk-123"))).toBe(true);
});

test("runs of others, and of missing sessions, look like missing ones", async () => {
  const { client, as, sessionId } = await openRunServer({ agents: { helper: answering(["Hello.", "Bye."]) } });
  const run = await client.runs.start(sessionId, { input: "Hi." });
  await allOf(client, run);
  const bob = as("bob");
  await expect(bob.runs.get(sessionId, run.runId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", status: 404 });
  await expect(bob.runs.cancel(sessionId, run.runId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(allOf(bob, run)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(bob.runs.ofSession(sessionId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", status: 404 });
  await expect(bob.runs.start(sessionId, { input: "Mine." })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(bob.runs.recover(sessionId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(as("ann").runs.get(sessionId, "nowhere")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  expect(await as("root").runs.get(sessionId, run.runId)).toMatchObject({ runId: run.runId, status: "finished" });
});

test("a request for an unknown agent or model is refused, and changes nothing", async () => {
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
  expect(await client.runs.ofSession(sessionId)).toEqual([]);
});

test("a requested model replaces the agent's own", async () => {
  const { client, store, sessionId } = await openRunServer({
    agents: { helper: answering([]) },
    models: [{ ...scripted([saying("From another.")]), provider: "other", id: "one" }],
  });
  const run = await client.runs.start(sessionId, { input: "Hi.", model: "other/one" });
  await nextOf(client, run, "run-finished");
  expect(await logOf(store, sessionId)).toContain("assistant: From another.");
});

function openGate() {
  const opened = gate();
  opened.open();
  return opened;
}

/** An answer in pieces, each of which comes once its gate is open; the last gate is for its end. */
function stepping(steps: readonly Gate[]): ScriptedReply {
  return async function* stream(): AsyncGenerator<ModelDelta> {
    for (const [index, step] of steps.entries()) {
      await step.opened;
      if (index < steps.length - 1) yield { type: "text-delta", text: String(index) };
    }
    yield { type: "finish", stopReason: "stop" };
  };
}

function eventOf({ data }: ParsedEvent): WireRunEvent {
  return JSON.parse(data ?? "") as WireRunEvent;
}

function ask(
  { url }: RunServer,
  { sessionId, runId }: RunName,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/api/sessions/${sessionId}/runs/${runId}/events`, { headers: { ...ANN, ...headers } });
}

/** The events of a run as they are sent, after an id. */
async function readRaw(server: RunServer, run: RunName, id: string | null = null): Promise<ParsedEvent[]> {
  const response = await ask(server, run, id === null ? {} : { "last-event-id": id });
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

test("a session's latest run, its head and the end of its path cost the same however long the log is", async () => {
  const store = openMemoryStore();
  let entriesRead = 0;
  const counted = new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key !== "read" || typeof value !== "function")
        return typeof value === "function" ? value.bind(target) : value;
      return async function* (...given: Parameters<typeof store.read>) {
        for await (const entry of target.read(...given)) {
          entriesRead += 1;
          yield entry;
        }
      };
    },
  });
  const { client } = await openRunServer({ store: counted });
  const costOf = async (runs: number): Promise<number> => {
    const id = `runs-${runs}`;
    await store.create(createHeader({ id, userId: "ann" }));
    const runDrafts = (runId: string): EntryDraft[] => [
      { type: "run", runId, phase: "started" },
      { type: "message", message: { role: "user", content: "Hi." } },
      { type: "message", message: { role: "assistant", content: "Hello." } },
      { type: "run", runId, phase: "finished" },
    ];
    await store.append(id, Array.from({ length: runs }, (_, i) => runDrafts(`run ${i + 1}`)).flat());
    entriesRead = 0;
    await client.sessions.get(id);
    expect((await client.sessions.path(id, { limit: 60 })).items).toHaveLength(60);
    expect(await client.runs.ofSession(id, { limit: 1 })).toMatchObject([{ runId: `run ${runs}`, status: "finished" }]);
    return entriesRead;
  };
  expect(await costOf(250)).toBe(await costOf(40));
});
