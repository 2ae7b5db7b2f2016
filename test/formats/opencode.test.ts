import { expect, test } from "vitest";
import type { JsonObject } from "../../src/internal/json.ts";
import { foreignFormat } from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { Message } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, goldenFiles, importText, readText, toldIn, writtenText } from "./foreign-samples.ts";

const opencode = foreignFormat("opencode");
const sessionID = "ses_e1ceb7b0dffe00000000000000";
const start = Date.UTC(2026, 0, 2, 3, 4);

let made = 0;

function message(info: JsonObject, parts: readonly JsonObject[]): JsonObject {
  const id = `msg_${String(++made).padStart(12, "0")}00000000000000`;
  const time = { created: start + made * 1000 };
  return {
    info: { id, sessionID, time, ...info },
    parts: parts.map((part) => ({ id: `prt_${++made}`, sessionID, ...part })),
  };
}

const user = (text: string): JsonObject => message({ role: "user" }, [{ type: "text", text }]);
const answer = (parts: readonly JsonObject[], info: JsonObject = {}): JsonObject =>
  message({ role: "assistant", providerID: "p", modelID: "m", ...info }, parts);

function exported(messages: readonly JsonObject[], info: JsonObject = {}): string {
  const about = {
    id: sessionID,
    directory: "/tmp/project",
    title: "Kettle",
    version: "1.18.33",
    time: { created: start },
  };
  return JSON.stringify({ info: { ...about, ...info }, messages });
}

const recorded = goldenFiles().filter(({ format }) => format === opencode);

test.for(recorded)("$name is exported as opencode had exported it", async ({ text }) => {
  await using store = openMemoryStore();
  const written = await writtenText(opencode, store, await importText(store, opencode, text));
  expect(JSON.parse(written)).toEqual(JSON.parse(text));
});

test("a tool part becomes a call and its result, and the answer has its cost", async () => {
  const tool = (callID: string, state: JsonObject): JsonObject => ({ type: "tool", tool: "bash", callID, state });
  const tokens = { input: 10, output: 5, reasoning: 2, cache: { read: 3, write: 1 } };
  const text = exported([
    user("Look."),
    answer(
      [
        { type: "step-start" },
        { type: "reasoning", text: "I look.", metadata: { anthropic: { signature: "sealed" } } },
        { type: "text", text: "Wait." },
        tool("c1", { status: "completed", input: { command: "ls" }, output: "kettle" }),
        tool("c2", { status: "error", input: {}, error: "no such file" }),
        tool("c3", { status: "running", input: {} }),
      ],
      { finish: "tool-calls", cost: 0.5, tokens },
    ),
  ]);
  await using store = openMemoryStore();
  const entries = await entriesOf(store, await importText(store, opencode, text));
  expect(entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []))).toEqual([
    { role: "user", content: "Look." },
    {
      role: "assistant",
      content: [
        { type: "thinking", text: "I look.", signature: "sealed" },
        { type: "text", text: "Wait." },
      ],
      toolCalls: [
        { id: "c1", name: "bash", arguments: '{"command":"ls"}' },
        { id: "c2", name: "bash", arguments: "{}" },
        { id: "c3", name: "bash", arguments: "{}" },
      ],
      provider: "p",
      model: "m",
      usage: {
        inputTokens: 14,
        outputTokens: 7,
        totalTokens: 21,
        cacheReadTokens: 3,
        cacheWriteTokens: 1,
        reasoningTokens: 2,
      },
      cost: 0.5,
      stopReason: "tool_calls",
    },
    { role: "tool", toolCallId: "c1", name: "bash", content: "kettle" },
    { role: "tool", toolCallId: "c2", name: "bash", content: "no such file", isError: true },
  ]);
});

test("a compaction keeps the messages that opencode keeps, and is exported unchanged", async () => {
  const kept = user("And the key?");
  const asked = message({ role: "user" }, [
    { type: "compaction", auto: true, tail_start_id: (kept.info as JsonObject).id ?? "" },
  ]);
  const summary = answer([{ type: "text", text: "The kettle is in the shed." }], { summary: true, finish: "stop" });
  const text = exported([user("Where is the kettle?"), kept, asked, summary, user("Thanks.")]);
  await using store = openMemoryStore();
  const sessionId = await importText(store, opencode, text);
  const told = (await toldIn(store, sessionId)).map(({ content }) => content);
  expect(told[0]).toContain("The kettle is in the shed.");
  expect(told.slice(1)).toEqual(["And the key?", "Thanks."]);
  const compactions = (await entriesOf(store, sessionId)).filter(({ type }) => type === "compaction");
  expect(compactions).toMatchObject([{ summary: "The kettle is in the shed." }]);
  expect(JSON.parse(await writtenText(opencode, store, sessionId))).toMatchObject(JSON.parse(text));
});

test("the cost of a summary is in the sums, and is exported again", async () => {
  const asked = message({ role: "user" }, [{ type: "compaction", auto: true }]);
  const tokens = { input: 54_000, output: 300, reasoning: 0, cache: { read: 80, write: 2 } };
  const summary = answer([{ type: "text", text: "The kettle is in the shed." }], { summary: true, cost: 0.5, tokens });
  await using store = openMemoryStore();
  const sessionId = await importText(store, opencode, exported([user("Where is the kettle?"), asked, summary]));
  expect(await store.head(sessionId)).toMatchObject({
    usage: { inputTokens: 54_082, outputTokens: 300, totalTokens: 54_382 },
    cost: 0.5,
  });
  const here = createHeader({ userId: "ana" });
  await store.create(here, {
    entries: (await entriesOf(store, sessionId)).map((entry) => {
      const { foreign: _foreign, ...own } = entry as typeof entry & { foreign?: unknown };
      return own;
    }),
  });
  await using second = openMemoryStore();
  const again = await importText(second, opencode, await writtenText(opencode, store, here.id));
  expect(await second.head(again)).toMatchObject({ usage: { totalTokens: 54_382 }, cost: 0.5 });
});

/** The models in the user messages of an exported session; opencode resumes with the last of them. */
async function modelsAsked(messages: readonly Message[]): Promise<unknown[]> {
  await using store = openMemoryStore();
  const header = createHeader({ userId: "ana" });
  await store.create(header, { entries: [] });
  await store.append(
    header.id,
    messages.map((each) => ({ type: "message", message: each })),
  );
  const document = JSON.parse(await writtenText(opencode, store, header.id));
  const infos: { role: string; model?: unknown }[] = document.messages.map(({ info }: { info: unknown }) => info);
  return infos.flatMap(({ role, model }) => (role === "user" ? [model] : []));
}

test("a user message names the model that answered it, or the last one before if there was no answer", async () => {
  const says = (model?: string): Message => ({
    role: "assistant",
    content: "In the shed.",
    provider: "anthropic",
    ...(model === undefined ? {} : { model }),
  });
  const asks: Message = { role: "user", content: "Where is the kettle?" };
  const named = (modelID: string) => ({ providerID: "anthropic", modelID });
  expect(await modelsAsked([asks, says("one")])).toEqual([named("one")]);
  expect(await modelsAsked([asks, says("one"), asks, says("two"), asks])).toEqual(["one", "two", "two"].map(named));
  // Claude Code uses this name for answers that it wrote itself.
  expect(await modelsAsked([asks, says("one"), asks, says("<synthetic>")])).toEqual(["one", "one"].map(named));
  expect(await modelsAsked([asks, says("<synthetic>"), says(), says("one")])).toEqual([named("one")]);
});

test("a user message that was never answered names the model of the run that began with it", async () => {
  await using store = openMemoryStore();
  const header = createHeader({ userId: "ana" });
  await store.create(header, { entries: [] });
  await store.append(header.id, [
    { type: "message", message: { role: "user", content: "Where is the kettle?" } },
    { type: "run", runId: "r", phase: "started", claim: 1, agent: "helper", model: "openrouter/meta/llama" },
    { type: "run", runId: "r", phase: "failed", error: { message: "The provider is down." } },
  ]);
  const [{ info }] = JSON.parse(await writtenText(opencode, store, header.id)).messages;
  expect(info.model).toEqual({ providerID: "openrouter", modelID: "meta/llama" });
});

test("a session of a sub-agent names its parent session", async () => {
  await using store = openMemoryStore();
  const parent = await importText(store, opencode, exported([user("Hello.")]));
  const child = exported([user("Read the notes.")], { id: "ses_child", parentID: sessionID });
  const head = await store.head(await importText(store, opencode, child));
  expect(head?.header.lineage).toMatchObject({ parents: [parent], kind: "op_fork" });
  expect(head?.name).toBe("Kettle");
});

test("messages that Skein adds have greater ids than those of opencode, which sorts by id", async () => {
  const [golden] = recorded;
  await using store = openMemoryStore();
  const sessionId = await importText(store, opencode, golden?.text ?? "");
  // All in one append, so with the same time.
  const more = ["One", "more", "and", "one", "more"];
  await store.append(
    sessionId,
    more.map((content) => ({ type: "message", message: { role: "user", content } })),
  );
  const { messages } = JSON.parse(await writtenText(opencode, store, sessionId));
  const ids = messages.map(({ info }: { info: { id: string } }) => info.id);
  expect(ids).toHaveLength(13);
  expect(ids.toSorted()).toEqual(ids);
});

test("a call of another program has its result even if a kept line is between them", async () => {
  const codex = goldenFiles().find(({ name }) => name === "codex-0.166.0-conversation.jsonl");
  if (codex === undefined) throw new Error("There is no recording of Codex.");
  await using store = openMemoryStore();
  const { messages } = JSON.parse(
    await writtenText(opencode, store, await importText(store, codex.format, codex.text)),
  );
  const parts = messages.flatMap(({ parts }: { parts: { type: string; state?: { status: string } }[] }) => parts);
  const states = parts.flatMap(({ state }: { state?: { status: string } }) => state?.status ?? []);
  expect(states).toEqual(["completed", "completed", "completed"]);
});

test.for(["{}", '{"info":{"id":"ses_1"}}', '{"info":{"id":"ses_1"},"messages":', "[]"])(
  "%s is one loss, and no session",
  async (text) => {
    await expect(readText(opencode, text)).rejects.toThrow("There is no session in it.");
  },
);
