import { expect, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { offline } from "../../src/models/index.ts";
import type { Message } from "../../src/session/message.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { startTestServer, TOKENS, tokenOf } from "./server-support.ts";

const ann = { token: tokenOf("ann") };
const says = (content: string): Message => ({ role: "user", content });
const answers = (content: string, by: object): Message => ({ role: "assistant", content, ...by });
const claude = { provider: "anthropic", model: "claude-sonnet-4-5" };

/** The server that skein serve starts without a key: its model was not chosen explicitly. */
function serveWithoutKey() {
  const model = { ...offline(), unnamed: true as const };
  const assistant = createAgent({ name: "assistant", prompt: "You help.", model, builtInTools: false });
  return startTestServer({ agents: [assistant], models: [offline()], tokens: TOKENS });
}

/** Each request that asks a model, by its name. */
const requests = (id: string, branchId: string): Readonly<Record<string, readonly [path: string, body: object]>> => ({
  run: [`/api/sessions/${id}/runs`, { input: "Hello?" }],
  "run of the agent": [`/api/sessions/${id}/runs`, { input: "Hello?", agent: "assistant" }],
  compaction: [`/api/sessions/${id}/compact`, {}],
  "merge of a summary": [`/api/sessions/${id}/merges`, { branchId, strategy: "summary" }],
  "chat of the AI SDK": [
    "/api/chat",
    { id, messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hello?" }] }] },
  ],
  "run of AG-UI": [
    "/agui/assistant",
    {
      ...{ threadId: id, runId: "r1", messages: [{ id: "m1", role: "user", content: "Hello?" }] },
      ...{ tools: [], context: [], state: {}, forwardedProps: {} },
    },
  ],
});

test.for([
  ["Claude", claude],
  ["a model that its log does not name", {}],
] as const)("an unnamed offline model answers no request in a session that %s has answered", async ([, by]) => {
  await using api = await serveWithoutKey();
  const { manager } = api;
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.addTurn(sessionId, says("Where is the kettle?"));
  await manager.addTurn(sessionId, answers("In the shed.", by));
  const fork = await manager.fork(sessionId, "try");
  await manager.addTurn(fork.sessionId, says("And the lid?"));
  await manager.addTurn(fork.sessionId, answers("In the sink.", by));
  const before = await digestOf(manager.store, sessionId);
  for (const [name, [path, body]] of Object.entries(requests(sessionId, fork.sessionId))) {
    const answer = await api.call("POST", path, body, ann);
    expect([name, answer.status, answer.body?.code]).toEqual([name, 404, "MODEL_NOT_FOUND"]);
  }
  expect(await digestOf(manager.store, sessionId)).toEqual(before);
});

test("the other answer may be on another branch, or before a compaction", async () => {
  await using api = await serveWithoutKey();
  const { manager } = api;
  const { sessionId } = await manager.create({ userId: "ann" });
  const tree = await manager.open(sessionId);
  const first = await tree.appendMessage(says("Where is the kettle?"));
  await tree.appendMessage(answers("In the shed.", {}));
  const kept = await tree.appendMessage(says("And the lid?"));
  await tree.appendCompaction({ summary: "About a kettle.", firstKeptEntryId: kept.id, tokensBefore: 10 });
  const run = () => api.call("POST", `/api/sessions/${sessionId}/runs`, { input: "Hello?" }, ann);
  expect((await run()).body.code).toBe("MODEL_NOT_FOUND");
  await tree.branch(first.id);
  expect((await run()).body.code).toBe("MODEL_NOT_FOUND");
});

test("a request that another process has recorded is not answered by it either", async () => {
  await using api = await serveWithoutKey();
  const { manager } = api;
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.addTurn(sessionId, says("Where is the kettle?"));
  await manager.addTurn(sessionId, answers("In the shed.", claude));
  const { runId } = await manager.request(sessionId, { agent: "assistant", input: "Hello?" });
  await api.call("POST", `/api/sessions/${sessionId}/recover`, {}, ann);
  const blocked = async () => (await manager.runs({ state: "requested" })).items[0]?.blocked?.code;
  await expect.poll(blocked).toBe("MODEL_NOT_FOUND");
  expect((await manager.runs({ state: "requested" })).items).toMatchObject([{ runId }]);
});

test("it answers in its own sessions, and everywhere once it is named", async () => {
  await using api = await serveWithoutKey();
  const { manager } = api;
  const { sessionId: own } = await manager.create({ userId: "ann" });
  for (const input of ["Hello?", "And again?"]) {
    const { status, body } = await api.call("POST", `/api/sessions/${own}/runs`, { input }, ann);
    expect(status).toBe(202);
    await expect.poll(async () => (await manager.head(own))?.openRuns.length, body.runId).toBe(0);
  }
  const { sessionId: other } = await manager.create({ userId: "ann" });
  await manager.addTurn(other, says("Where is the kettle?"));
  await manager.addTurn(other, answers("In the shed.", claude));
  const named = { input: "Hello?", model: "offline/offline" };
  expect((await api.call("POST", `/api/sessions/${other}/runs`, named, ann)).status).toBe(202);
});
