import { describe, expect, test } from "vitest";
import { compact, registerPrices } from "../src/context/index.ts";
import {
  createAgent,
  createHeader,
  createModel,
  createTree,
  defineTool,
  openManager,
  openStore,
  runSessionLoop,
  Session,
  SessionTree,
} from "../src/index.ts";
import { offline } from "../src/models/index.ts";
import { inProcessQueue, startWorker } from "../src/workers/index.ts";
import { createServer, openTokenFile, sessionMiddleware } from "../src/http/index.ts";
import { chatHandler, createChatTransport } from "../src/http/ui/index.ts";
import { GroupSession, TopicBasedTurnManager } from "../src/group/index.ts";
import { BranchManager, CheckpointManager, SummaryMerge } from "../src/lifecycle/index.ts";

const init = { name: "helper", prompt: "You are brief.", model: offline() };
const agent = createAgent(init);
const tool = {
  name: "find_order",
  description: "Finds an order.",
  parameters: { type: "object" },
  execute: () => "found",
};

const newTree = async () => createTree(await openStore("memory:"));

/** Wrong calls, with a part of the expected error message. */
const mistakes: Readonly<Record<string, readonly [call: () => unknown, says: string]>> = {
  "an agent without anything": [() => createAgent(undefined as never), "createAgent takes an object of options"],
  "an agent with instructions": [() => createAgent({ ...init, instructions: "x" } as never), "are its prompt"],
  "an agent with tools by name": [
    () => createAgent({ ...init, tools: { find_order: tool } } as never),
    "a list of tools",
  ],
  "an agent with no tools in an object": [() => createAgent({ ...init, tools: {} } as never), "a list of tools"],
  "an agent with one tool": [() => createAgent({ ...init, tool } as never), "did you mean tools?"],
  "a tool of another SDK": [
    () => createAgent({ ...init, tools: [{ description: "x", inputSchema: {}, execute: () => 1 }] } as never),
    "what other SDKs call inputSchema is parameters",
  ],
  "a tool with inputSchema": [
    () => defineTool({ name: "a", description: "b", inputSchema: {}, execute: () => 1 } as never),
    "is its parameters",
  ],
  "a tool with run": [() => defineTool({ ...tool, execute: undefined, run: () => 1 } as never), "is execute"],
  "a tool whose parameters are no schema": [
    () => defineTool({ ...tool, parameters: { city: "string" } as never }),
    '"city" is no keyword of JSON Schema',
  ],
  "an output that is no schema": [() => agent.run("hi", { output: { city: "string" } }), '"city" is no keyword'],
  "a run with persit": [() => agent.run("hi", { persit: true } as never), "did you mean persist?"],
  "a budget with totalToken": [
    () => agent.run("hi", { budget: { totalToken: 1 } } as never),
    "did you mean totalTokens?",
  ],
  "an agent with a misspelt budget": [
    () => createAgent({ ...init, budget: { totalToken: 1 } } as never),
    "did you mean totalTokens?",
  ],
  "an agent with a misspelt retry": [
    () => createAgent({ ...init, retry: { attempt: 1 } } as never),
    "did you mean attempts?",
  ],
  "an agent with a misspelt park": [
    () => createAgent({ ...init, park: { afterMS: 1 } } as never),
    "did you mean afterMs?",
  ],
  "an agent with a misspelt compaction": [
    () => createAgent({ ...init, compaction: { setting: {} } } as never),
    "did you mean settings?",
  ],
  "an agent with an output that is no schema": [
    () => createAgent({ ...init, output: { city: "string" } } as never),
    '"city" is no keyword',
  ],
  "a group with agents": [
    async () => new GroupSession({ manager: await openManager({ store: "memory:" }), agents: [agent] } as never),
    'A group does not take "agents" here',
  ],
  "a run of a group with maxRound": [
    async () =>
      new GroupSession({ manager: await openManager({ store: "memory:" }) }).run("s", "hi", { maxRound: 1 } as never),
    "did you mean maxRounds?",
  ],
  "topics with a misspelt option": [
    () => new TopicBasedTurnManager({ a: "b" }, null, 10, { wholeWord: true } as never),
    "did you mean wholeWords?",
  ],
  "a manager whose memory has no add": [
    () => openManager({ store: "memory:", memory: { put: () => {} } } as never),
    "a function in memory.add",
  ],
  "a manager whose onError is no function": [
    () => openManager({ store: "memory:", onError: "warn" } as never),
    "a function in onError",
  ],
  "a fork with a misspelt limit": [
    async () => new BranchManager(await openStore("memory:")).fork("s", "try", { maxOpenPerUsers: 1 } as never),
    "did you mean maxOpenPerUser?",
  ],
  "a merge with dryrun": [
    async () => new BranchManager(await openStore("memory:")).merge("s", "t", { dryrun: true } as never),
    "did you mean dryRun?",
  ],
  "a summary merge with instruction": [
    () => new SummaryMerge({ model: offline(), instruction: "x" } as never),
    "did you mean instructions?",
  ],
  "a checkpoint with a misspelt sandbox": [
    async () => new CheckpointManager(await openStore("memory:")).create("s", { sandBox: {} } as never),
    "did you mean sandbox?",
  ],
  "a tree in a file with persitFrom": [
    () => SessionTree.create(".", { persitFrom: "create" } as never),
    "did you mean persistFrom?",
  ],
  "a message with the calls of another SDK": [
    async () =>
      (await newTree()).appendMessage({ role: "assistant", content: null, tool_calls: [{ id: "c" }] } as never),
    "the calls of an answer are toolCalls",
  ],
  "a result with the call of another SDK": [
    async () => (await newTree()).appendMessage({ role: "tool", content: "42", tool_call_id: "c" } as never),
    "the call of a result is toolCallId",
  ],
  "a message with a field of its own": [
    async () => (await newTree()).appendMessage({ role: "user", content: "hi", topic: "a" } as never),
    'does not take "topic"',
  ],
  "an append with expectVersion": [
    async () => (await openStore("memory:")).append("s", [], { expectVersion: 1 } as never),
    "did you mean expectedVersion?",
  ],
  "an append with a misspelt guard": [
    async () => (await openStore("memory:")).append("s", [], { guard: { statuss: "active" } } as never),
    "did you mean status?",
  ],
  "a new session of a store with a misspelt limit": [
    async () => (await openStore("memory:")).create(createHeader({ id: "s" }), { maxOpenPerUsers: 1 } as never),
    "did you mean maxOpenPerUser?",
  ],
  "a session value of a type": [() => Session.create({ type: "user" } as never), 'does not take "type"'],
  "a middleware with a cookie": [
    async () => sessionMiddleware({ manager: await openManager({ store: "memory:" }), cookie: "c" } as never),
    'does not take "cookie"',
  ],
  "a token file with a misspelt time": [
    () => openTokenFile("tokens", { graceMS: 1 } as never),
    "did you mean graceMs?",
  ],
  "a chat handler with options": [
    () => chatHandler({ fetch: async () => new Response() }, { path: "/chat" } as never),
    "chatHandler takes the path",
  ],
  "a chat handler with a slash at the end": [
    () => chatHandler({ fetch: async () => new Response() }, "/chat/"),
    "chatHandler takes the path",
  ],
  "a chat transport with url": [() => createChatTransport({ url: "/chat" } as never), 'does not take "url"'],
  "a run with a hot temperature": [
    () => agent.run("hi", { temperature: "hot" } as never),
    "temperature is not a number of 0 or more",
  ],
  "a run with one stop text": [() => agent.run("hi", { stop: "end" } as never), "stop is not a list of texts"],
  "a run with an unknown tool choice": [
    () => agent.run("hi", { toolChoice: "requird" } as never),
    "toolChoice is not one of auto, none, required",
  ],
  "telemetry with content": [
    () => agent.run("hi", { telemetry: { content: true } } as never),
    "did you mean contents?",
  ],
  "a server with a limit that there is not": [
    () => createServer({ limits: { streamPerUser: 1 } } as never),
    "did you mean streamsPerUser?",
  ],
  "a server with half a rate": [
    () => createServer({ limits: { rate: { requestPerSecond: 1, burst: 1 } } } as never),
    "did you mean requestsPerSecond?",
  ],
  "a server with a place that has a directory": [
    async () =>
      createServer({ store: await openStore("memory:"), place: { backend: "local", directory: "." } } as never),
    'place does not take "directory" here',
  ],
  "a server with a misspelt isolation": [
    async () =>
      createServer({
        store: await openStore("memory:"),
        place: { backend: "local", spec: { isolaton: "required" }, perUser: false },
      } as never),
    'has no "isolaton"',
  ],
  "a loop with maxSteps": [
    () => runSessionLoop(Session.fromUserMessage("hi"), agent.session, { model: offline(), maxSteps: 3 } as never),
    "are maxToolRounds",
  ],
  "a run without an input": [
    () => agent.run(undefined as never),
    "agent.run takes a text, content parts or messages, too",
  ],
  "an image of another SDK": [
    () => agent.run([{ type: "image_url", image_url: { url: "https://host/a.png" } }] as never),
    'give an image as { type: "image", mediaType, data }',
  ],
  "a model without a provider": [() => createModel("gpt-5-mini"), "There is no model provider"],
  "a model that is no text": [() => createModel(42 as never), "createModel takes a name"],
  "options of a model by another name": [
    () => createModel("openai/gpt-5-mini", { api_key: "x" } as never),
    "it is called apiKey",
  ],
  "a manager with a url": [() => openManager({ url: "memory:" } as never), "name a store as"],
  "a run of a manager with persist": [
    async () => (await openManager({ store: "memory:" })).run(agent, "hi", { persist: true } as never),
    "a manager stores every run",
  ],
  "a worker without a manager": [
    () => startWorker({ agents: [agent], queue: inProcessQueue() } as never),
    "a manager, such as openManager makes",
  ],
  "a worker without anything": [() => startWorker(undefined as never), "startWorker takes an object of options"],
  "a server with a misspelt option": [() => createServer({ agent } as never), "did you mean agents?"],
  "a tree on a URL": [() => createTree("sqlite:./a.db" as never), "no open store"],
  "a compaction without a tree": [() => compact({} as never, { model: offline() }), "a tree, such as createTree makes"],
  "prices in a list": [() => registerPrices([] as never), "an object of prices by model"],
  "a store with a misspelt option": [
    () => openStore("memory:", { durabilty: "fsync" } as never),
    "did you mean durability?",
  ],
};

describe("a mistake at a call", () => {
  test.for(Object.entries(mistakes))(
    "%s is refused with a sentence that says what to write",
    async ([, [call, says]]) => {
      const answered = Promise.resolve().then(call);
      await expect(answered).rejects.toMatchObject({
        name: expect.stringMatching(/^SessionError$/),
        code: expect.stringMatching(/^INVALID_/),
        message: expect.stringContaining(says),
      });
    },
  );

  test("is not looked for in metadata, variables, provider options and schemas, which are the caller's own", async () => {
    await using manager = await openManager({ store: "memory:" });
    const answer = await manager.run(agent, "hi", { providerOptions: { anything: { at: "all" } } });
    await manager.create({ userId: "local", metadata: { anything: 1 } });
    const anything = defineTool({ ...tool, parameters: { type: "object", properties: { anything: {} } } });
    expect([answer.text(), anything.schema.name]).toEqual([expect.stringContaining("offline"), "find_order"]);
  });
});
