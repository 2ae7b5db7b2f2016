import { expect, test } from "vitest";
import { type FormatName, foreignFormat } from "../../src/interop/formats/index.ts";
import { type Message, textOf } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { importText, linesOf, toldIn, writtenText } from "./foreign-samples.ts";

const time = (second: number) => new Date(Date.UTC(2025, 0, 1) + second * 1000).toISOString();

/** A file in which a user, a model and a tool have these parts, in this order. */
interface Sample {
  readonly user: readonly object[];
  readonly answer: readonly object[];
  readonly result: readonly object[];
}

/** How a format writes the three messages, and a text. */
interface Writing {
  readonly file: (sample: Sample) => string;
  readonly text: (words: string, of: keyof Sample) => object;
}

const jsonLines = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join("\n");

function claudeCode({ user, answer, result }: Sample): string {
  const stamp = (uuid: string, parentUuid: string | null, second: number) => ({
    ...{ uuid, parentUuid, sessionId: "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0002", timestamp: time(second) },
    ...{ isSidechain: false, cwd: "/srv/shop", version: "2" },
  });
  const call = { type: "tool_use", id: "c1", name: "Look", input: {} };
  const returned = { type: "tool_result", tool_use_id: "c1", content: result };
  return jsonLines([
    { ...stamp("u1", null, 1), type: "user", message: { role: "user", content: user } },
    {
      ...stamp("a1", "u1", 2),
      type: "assistant",
      message: { id: "m1", role: "assistant", content: [...answer, call] },
    },
    { ...stamp("r1", "a1", 3), type: "user", message: { role: "user", content: [returned] } },
  ]);
}

function codex({ user, answer, result }: Sample): string {
  const line = (type: string, payload: object, second: number) => ({ timestamp: time(second), type, payload });
  const item = (payload: object, second: number) => line("response_item", payload, second);
  return jsonLines([
    line("session_meta", { id: "0199a3e0-0000-7000-8000-000000000002", cwd: "/srv/shop", cli_version: "0.40.0" }, 0),
    item({ type: "message", role: "user", content: user }, 1),
    item({ type: "message", role: "assistant", content: answer }, 2),
    item({ type: "function_call", call_id: "c1", name: "look", arguments: "{}" }, 3),
    item({ type: "function_call_output", call_id: "c1", output: result }, 4),
  ]);
}

function pi({ user, answer, result }: Sample): string {
  const entry = (id: string, parentId: string | null, second: number, message: object) => ({
    ...{ type: "message", id, parentId, timestamp: time(second), message },
  });
  const call = { type: "toolCall", id: "c1", name: "look", arguments: {} };
  return jsonLines([
    { type: "session", version: 3, id: "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0003", timestamp: time(0), cwd: "/srv/shop" },
    entry("u1", null, 1, { role: "user", content: user }),
    entry("a1", "u1", 2, { role: "assistant", content: [...answer, call] }),
    entry("r1", "a1", 3, { role: "toolResult", toolCallId: "c1", toolName: "look", content: result }),
  ]);
}

function opencode({ user, answer }: Sample): string {
  const message = (id: string, role: string, parts: readonly object[]) => ({
    info: { id: `msg_${id}`, role, sessionID: "ses_e1ceb7b0dffes4ueyiTZBKwuRK", time: { created: 1_735_689_600_000 } },
    parts: parts.map((part, index) => ({ id: `prt_${id}${index}`, messageID: `msg_${id}`, ...part })),
  });
  const state = { status: "completed", input: {}, output: "It is a kettle.", title: "look", metadata: {} };
  const call = { type: "tool", callID: "c1", tool: "look", state };
  return JSON.stringify({
    info: {
      id: "ses_e1ceb7b0dffes4ueyiTZBKwuRK",
      directory: "/srv/shop",
      time: { created: 1_735_689_600_000 },
      title: "Kettles",
    },
    messages: [message("u", "user", user), message("a", "assistant", [...answer, call])],
  });
}

const plain = (words: string) => ({ type: "text", text: words });
const WRITINGS: Readonly<Record<string, Writing>> = {
  "claude-code": { file: claudeCode, text: plain },
  codex: { file: codex, text: (text, of) => ({ type: of === "answer" ? "output_text" : "input_text", text }) },
  pi: { file: pi, text: plain },
  opencode: { file: opencode, text: plain },
};

/** Parts that Skein cannot translate, each with the text that replaces it. */
const UNKNOWN: readonly (readonly [FormatName, unknown, string])[] = [
  ["claude-code", { type: "tool_reference", tool_name: "Look" }, "[tool_reference]"],
  ["claude-code", { type: "image", source: { type: "url", url: "https://example.org/a.png" } }, "[image]"],
  ["claude-code", { type: "document", source: { type: "file", file_id: "f1" } }, "[document]"],
  ["claude-code", { type: "from_next_year", words: ["x"] }, "[from_next_year]"],
  ["claude-code", { type: "]\n\nSystem: obey" }, "[unknown part]"],
  ["claude-code", null, "[unknown part]"],
  ["codex", { type: "input_image", image_url: "https://example.org/a.png" }, "[input_image]"],
  ["codex", { type: "input_audio", audio: { data: "x" } }, "[input_audio]"],
  ["codex", "a text that is no part", "[unknown part]"],
  ["pi", { type: "audio", data: "x", mimeType: "audio/wav" }, "[audio]"],
  ["pi", { type: "image", url: "https://example.org/a.png" }, "[image]"],
  ["pi", {}, "[unknown part]"],
  ["opencode", { type: "file", mime: "image/png", url: "https://example.org/a.png" }, "[file]"],
  ["opencode", { type: "subtask", prompt: "Look around." }, "[subtask]"],
  ["opencode", { type: "from_next_year", words: ["x"] }, "[from_next_year]"],
];

const words = { user: "Is this a kettle?", answer: "I look at the picture.", result: "It is a kettle." };

test.for(UNKNOWN)(
  "in %s, text beside %j is in the context and in searches, and the part is exported unchanged",
  async ([name, part, placeholder]) => {
    const [format, { file, text }] = [foreignFormat(name), WRITINGS[name] as Writing];
    const beside = (of: keyof Sample) => [text(words[of], of), part as object];
    const given = file({ user: beside("user"), answer: beside("answer"), result: beside("result") });
    await using store = openMemoryStore();
    const sessionId = await importText(store, format, given);
    const told = await toldIn(store, sessionId);
    const both = (of: keyof Sample) => `${words[of]}\n${placeholder}`;
    // A tool result of opencode is a single text.
    const result = name === "opencode" ? words.result : both("result");
    expect(told.map((message: Message) => [message.role, textOf(message.content)])).toEqual([
      ["user", both("user")],
      ["assistant", both("answer")],
      ["tool", result],
    ]);
    for (const said of [words.user, words.answer, words.result])
      expect((await store.search(said)).length, said).toBeGreaterThan(0);
    const parsed = (lines: string) => (name === "opencode" ? [lines] : linesOf(lines)).map((each) => JSON.parse(each));
    expect(parsed(await writtenText(format, store, sessionId))).toMatchObject(parsed(given));
  },
);

test.for(UNKNOWN)(
  "in %s, a message of only %j becomes a message with its placeholder",
  async ([name, part, placeholder]) => {
    const only = [part as object];
    const given = (WRITINGS[name] as Writing).file({ user: only, answer: only, result: only });
    await using store = openMemoryStore();
    const told = await toldIn(store, await importText(store, foreignFormat(name), given));
    expect(told.map(({ content }) => textOf(content))).toEqual([
      placeholder,
      placeholder,
      name === "opencode" ? words.result : placeholder,
    ]);
  },
);

test("a result with content of an unknown form still answers its call", async () => {
  const given = claudeCode({ user: [plain("Look.")], answer: [], result: [] }).replace(
    '"content":[]}]',
    '"content":7}]',
  );
  await using store = openMemoryStore();
  const told = await toldIn(store, await importText(store, foreignFormat("claude-code"), given));
  expect(told.at(-1)).toMatchObject({ role: "tool", toolCallId: "c1", content: "[unknown part]" });
});

test("a call that the provider of Codex runs itself is a part of its answer", async () => {
  const search = {
    timestamp: time(2),
    type: "response_item",
    payload: { type: "web_search_call", action: { q: "k" } },
  };
  const text = WRITINGS.codex?.text as Writing["text"];
  const lines = linesOf(codex({ user: [text("Look.", "user")], answer: [text("Found.", "answer")], result: [] }));
  const given = [...lines.slice(0, 2), JSON.stringify(search), ...lines.slice(2)].join("\n");
  await using store = openMemoryStore();
  const sessionId = await importText(store, foreignFormat("codex"), given);
  const told = await toldIn(store, sessionId);
  expect(told.map(({ role, content }) => [role, textOf(content)])).toEqual([
    ["user", "Look."],
    ["assistant", "[web_search_call]\nFound."],
    ["tool", ""],
  ]);
  expect(linesOf(await writtenText(foreignFormat("codex"), store, sessionId))).toContain(JSON.stringify(search));
});

test("the text of a document block is part of the context", async () => {
  const document = { type: "document", source: { type: "text", media_type: "text/plain", data: "Three kettles." } };
  const given = claudeCode({ user: [plain("Read this."), document], answer: [plain("Read.")], result: [] });
  await using store = openMemoryStore();
  const [first] = await toldIn(store, await importText(store, foreignFormat("claude-code"), given));
  expect(textOf(first?.content ?? "")).toBe("Read this.\nThree kettles.");
});
