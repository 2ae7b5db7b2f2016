import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { EVENTS_MAX } from "../../src/agent/event-log.ts";
import { ModelError } from "../../src/agent/model/model-error.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import type { WireRunEvent } from "../../src/http/client/index.ts";
import type { JsonObject } from "../../src/internal/json.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { usage } from "../sample-log.ts";
import { calling, callOf, eventsOf, saying, toolOf } from "../sample-run.ts";
import { answering, gate } from "./runs-agents.ts";
import { allOf, nextOf, openRunServer, type RunServer } from "./runs-server.ts";

/** All types of events; a new one must be added here. */
const TYPES: Readonly<Record<WireRunEvent["type"], true>> = {
  "run-started": true,
  "round-started": true,
  "text-delta": true,
  "thinking-delta": true,
  "tool-call-delta": true,
  "model-retry": true,
  usage: true,
  "budget-warning": true,
  "tool-started": true,
  "tool-finished": true,
  "approval-required": true,
  "approval-settled": true,
  compaction: true,
  "round-finished": true,
  "leaf-moved": true,
  "events-dropped": true,
  "run-parked": true,
  "run-finished": true,
  "run-failed": true,
  "group-started": true,
  "agent-selected": true,
  "agent-finished": true,
  "agent-failed": true,
  "group-finished": true,
  "group-failed": true,
};

interface Schema {
  readonly properties?: JsonObject;
  readonly discriminator?: { readonly mapping: Readonly<Record<string, string>> };
}

/** The event schemas of a server's OpenAPI document: a check of an event, and the schema of each type. */
async function contractOf({ url }: Pick<RunServer, "url">) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, { readonly get?: JsonObject }>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema(document, "document");
  const check = ajv.compile({ $ref: "document#/components/schemas/RunEvent" });
  const schemas = document.components.schemas;
  const mapping = schemas["RunEvent"]?.discriminator?.mapping ?? {};
  const fieldsOf = (type: string): readonly string[] =>
    Object.keys(schemas[(mapping[type] ?? "").split("/").at(-1) ?? ""]?.properties ?? {});
  /** Throws unless the document describes every field of an event. */
  const validate = (event: object): void => {
    const { type } = event as WireRunEvent;
    if (!check(event)) throw new Error(`${type}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(event)}`);
    const unsaid = Object.keys(event).filter((field) => !fieldsOf(type).includes(field));
    if (unsaid.length > 0) throw new Error(`The schema of ${type} says nothing of ${unsaid.join(", ")}.`);
  };
  return { document, mapping, validate };
}

const overloaded = new ModelError("overloaded", "Too busy.", { provider: "sample", retryAfterMs: 1 });

/** Replies that cause every event of a loop except a failure. */
function busyAgent(onEvent: (event: RunEvent) => void): Agent {
  const first = saying("Let me see.", {
    toolCalls: [callOf("1", "pay", { amount: 3 })],
    stopReason: "tool_calls",
    usage: usage(950, 10),
    cost: 0.5,
  });
  const thoughtful = async function* () {
    yield { type: "thinking-delta", text: "Hm." } as const;
    yield { type: "finish", stopReason: "stop", reply: first } as const;
  };
  const agent = createAgent({
    name: "busy",
    prompt: "Be brief.",
    model: scripted([overloaded, thoughtful, calling(callOf("2", "look", { path: "x" })), "Done."], {
      contextWindow: 1000,
    }),
    tools: [toolOf("look"), toolOf("pay", () => "paid", { needsApproval: () => true })],
    builtInTools: false,
    retry: { baseDelayMs: 0 },
    compaction: {
      model: scripted(["In short.", "In short."]),
      settings: { keepRecentTokens: 20, reserveTokens: 100, tokenizer: (text: string) => text.length },
    },
  });
  return { ...agent, run: (input, options) => agent.run(input, { ...options, onEvent }) };
}

test("events of a run are the same after JSON and HTTP, and match the OpenAPI document", async () => {
  const heard: RunEvent[] = [];
  const server = await openRunServer({ agents: { busy: busyAgent((event) => heard.push(event)) } });
  const { client, sessionId, manager } = server;
  const old = "An old question, long enough to be left out?";
  await manager.addTurn(sessionId, { role: "user", content: old }, { actor: { userId: "ann", admin: false } });
  const run = await client.runs.start(sessionId, { input: "Go on." });
  const { approval } = await nextOf(client, run, "approval-required");
  const reading = allOf(client, run);
  await client.runs.approve(sessionId, approval.question);
  const told = await reading;
  // Recorded events follow the log: the answer when it is recorded, with the claim under which it started.
  expect(told).toHaveLength(heard.length);
  for (const event of heard) expect(told).toContainEqual(event.type === "run-started" ? { ...event, claim: 1 } : event);
  expect(JSON.parse(JSON.stringify(heard))).toEqual(heard);
  const { validate } = await contractOf(server);
  told.forEach(validate);
  const { runId } = run;
  expect(told[0]).toEqual({ type: "run-started", runId, claim: 1 });
  expect(new Set(told.map((event) => event.runId))).toEqual(new Set([runId]));
  expect(new Set(told.map(({ type }) => type))).toEqual(
    new Set<WireRunEvent["type"]>([
      "run-started",
      "round-started",
      "thinking-delta",
      "text-delta",
      "tool-call-delta",
      "model-retry",
      "usage",
      "approval-required",
      "tool-started",
      "tool-finished",
      "compaction",
      "round-finished",
      "run-finished",
    ]),
  );
  expect(told.filter((event) => event.type === "tool-started")).toMatchObject([
    { callId: "1", name: "pay", arguments: { amount: 3 } },
    { callId: "2", name: "look", arguments: { path: "x" } },
  ]);
  expect(told.find((event) => event.type === "model-retry")?.error).toEqual({
    code: "MODEL_FAILED",
    message: "Too busy.",
    details: { kind: "overloaded", provider: "sample", status: null, retryAfterMs: 1 },
  });
});

test("the error of a failed run or group keeps its code, message and details in JSON", async () => {
  const refused = new ModelError("authentication", "The key is wrong.", { provider: "sample", status: 401 });
  const hold = gate();
  const refuse = async () => {
    await hold.opened;
    return { ok: false, error: "I would rather not." } as const;
  };
  const groups = (manager: SessionManager) => ({
    crew: new GroupSession({ manager })
      .addAgent({ name: "shy", execute: refuse })
      .addAgent(answering([refused], [], "lost")),
  });
  const server = await openRunServer({ agents: { helper: answering([refused]) }, groups });
  const { validate } = await contractOf(server);
  const { client, sessionId } = server;
  const error = {
    code: "MODEL_FAILED",
    message: "The key is wrong.",
    details: { kind: "authentication", provider: "sample", status: 401, retryAfterMs: null },
  };
  const alone = await client.runs.start(sessionId, { input: "Hi." });
  const failed = await allOf(client, alone);
  expect(failed.at(-1)).toEqual({ type: "run-failed", error, runId: alone.runId });
  const run = await client.runs.start(sessionId, { input: "Hi.", group: "crew" });
  const telling = allOf(client, run);
  await nextOf(client, run, "agent-selected").then(hold.open);
  const told = await telling;
  const { runId } = run;
  expect(told.slice(-3)).toEqual([
    { type: "run-failed", error, agent: "lost", runId },
    { type: "agent-failed", error, agent: "lost", runId },
    { type: "group-finished", outcome: { reason: "agent-failed", agent: "lost", error }, runId },
  ]);
  expect(told.find((event) => event.type === "agent-finished")).toMatchObject({ agent: "shy", kind: "refused" });
  [...failed, ...told].forEach(validate);
});

test("a program with the run's handle gets the original error, and the same event as JSON still has the reason", async () => {
  const boom = Object.assign(new Error("The disk is full."), { code: "ENOSPC", secret: "sk-123" });
  const run = answering([boom]).run("Hi.");
  const last = (await eventsOf(run)).at(-1);
  if (last?.type !== "run-failed") throw new Error("The run did not fail.");
  expect(last.error.cause).toBe(boom);
  expect(JSON.parse(JSON.stringify(last))).toEqual({
    type: "run-failed",
    error: { code: "ENOSPC", message: "The disk is full." },
    runId: last.runId,
  });
});

test("arguments that a schema transforms into values other than JSON are sent as the model wrote them", async () => {
  const dated = toolOf("remind", () => "done", {
    check: () => ({ ok: true, value: { at: new Date(0) } }),
    needsApproval: () => true,
  });
  const run = answering([calling(callOf("1", "remind", { at: "1970" })), "Done."], [dated]).run("Hi.");
  const events: RunEvent[] = [];
  for await (const event of run) {
    events.push(event);
    if (event.type === "approval-required") await run.approve("1");
  }
  expect(events.find((event) => event.type === "tool-started")?.arguments).toEqual({ at: "1970" });
  expect(events.find((event) => event.type === "approval-required")?.approval.arguments).toEqual({ at: "1970" });
});

test("the document has every type of event, also those about missed events and cancellations", async () => {
  const { mapping, validate, document } = await contractOf(await openRunServer());
  expect(Object.keys(mapping).sort()).toEqual(Object.keys(TYPES).sort());
  const stream = document.paths["/api/sessions/{id}/runs/{runId}/events"]?.get;
  expect(stream).toHaveProperty(["responses", "200", "content", "text/event-stream", "schema"], {
    $ref: "#/components/schemas/RunEvent",
  });
  const chatty = async function* () {
    for (let index = 0; index < EVENTS_MAX * 2; index++) yield { type: "text-delta", text: "." } as const;
    yield { type: "finish", stopReason: "stop" } as const;
  };
  const run = answering([chatty]).run("Hi.");
  await run;
  const [dropped] = await eventsOf(run);
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId } = await manager.create({ userId: "ann" });
  const group = new GroupSession({ manager }).addAgent({ name: "slow", execute: () => new Promise(() => {}) });
  const stopped = group.stream(sessionId, "Hi.", {
    onEvent: ({ type }) => type === "agent-selected" && stopped.abort("Enough."),
  });
  const told: object[] = [dropped ?? {}];
  for await (const event of stopped) told.push(event);
  expect(told.map((event) => (event as WireRunEvent).type)).toEqual([
    "events-dropped",
    "group-started",
    "agent-selected",
    "group-failed",
  ]);
  expect(told.at(-1)).toMatchObject({ error: { code: "ABORTED", message: expect.stringMatching(/was aborted/) } });
  for (const event of told) validate(JSON.parse(JSON.stringify(event)));
});
