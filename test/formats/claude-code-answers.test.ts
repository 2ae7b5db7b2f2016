import { expect, test } from "vitest";
import { foreignFormat } from "../../src/interop/formats/index.ts";
import { type Message, textOf } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, importText, linesOf, toldIn, writtenText } from "./foreign-samples.ts";

const format = foreignFormat("claude-code");
const sessionId = "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0004";
let seconds = 0;

/** A line whose parent is another one. */
function line(uuid: string, parentUuid: string | null, own: object): string {
  seconds += 1;
  const timestamp = new Date(Date.UTC(2025, 0, 1) + seconds * 1000).toISOString();
  const stamp = { uuid, timestamp, cwd: "/srv/shop", sessionId, version: "2" };
  return JSON.stringify({ parentUuid, isSidechain: false, ...own, ...stamp });
}

const said = (content: unknown) => ({ type: "user", message: { role: "user", content } });
const result = (id: string, content: string) => said([{ type: "tool_result", tool_use_id: id, content }]);
const usage = { input_tokens: 1000, output_tokens: 5 };
const answer = (id: string, ...content: object[]) => ({
  type: "assistant",
  message: { id, role: "assistant", model: "m", content, usage },
});
const call = (id: string) => ({ type: "tool_use", id, name: "Read", input: { file: id } });
const text = (words: string) => ({ type: "text", text: words });
const progress = { type: "progress", data: { type: "hook_progress", output: "still at it" } };
const system = { type: "system", subtype: "informational", content: "A hook ran.", level: "info" };
const other = (type: string, own: object) => JSON.stringify({ type, ...own });

/** The context as one text for each message. */
const told = (messages: readonly Message[]) =>
  messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => ` +${id}`) : [];
    const of = message.role === "tool" ? ` ${message.toolCallId}` : "";
    return `${message.role}${of}: ${textOf(message.content)}${calls.join("")}`;
  });

async function imported(lines: readonly string[]) {
  await using store = openMemoryStore();
  const id = await importText(store, format, `${lines.join("\n")}\n`);
  const written = await writtenText(format, store, id);
  // Other lines between the lines of an answer are written after them.
  const parsed = (some: readonly string[]) => some.toSorted().map((each) => JSON.parse(each));
  expect(parsed(linesOf(written))).toEqual(parsed(lines));
  return {
    told: told(await toldIn(store, id)),
    usage: (await store.head(id))?.usage,
    entries: await entriesOf(store, id),
  };
}

/** Lines that may be between the two calls of one answer. */
const BETWEEN: Readonly<Record<string, (after: string) => readonly string[]>> = {
  "a summary": () => [other("summary", { summary: "Kettles", leafUuid: "a1" })],
  "a title": () => [other("ai-title", { aiTitle: "Kettles", sessionId })],
  "a note of a hook": (after) => [line("s1", after, system)],
  "a snapshot of files": () => [other("file-history-snapshot", { messageId: "x", snapshot: {} })],
  "the progress of a tool": (after) => [line("p1", after, progress)],
  "words of a skill": (after) => [line("k1", after, { ...said("How to look."), isMeta: true })],
};

test.for(Object.entries(BETWEEN))(
  "%s between two calls of an answer does not split the answer, and its usage counts once",
  async ([what, between]) => {
    const lines = [
      line("u1", null, said("Read both.")),
      line("a1", "u1", answer("m1", call("one"))),
      ...between("a1"),
      line("a2", "a1", answer("m1", call("two"))),
      line("r1", "a1", result("one", "first")),
      line("r2", "a2", result("two", "second")),
      line("a3", "r2", answer("m2", text("Done."))),
    ];
    const { told, usage: spent } = await imported(lines);
    const skill = what === "words of a skill" ? ["user: How to look."] : [];
    expect(told).toEqual([
      "user: Read both.",
      "assistant:  +one +two",
      ...["tool one: first", "tool two: second"],
      ...skill,
      "assistant: Done.",
    ]);
    expect(spent).toMatchObject({ inputTokens: 2000, outputTokens: 10, totalTokens: 2010 });
  },
);

test("results stay on the path however many other lines precede them", async () => {
  const many = Array.from({ length: 1500 }, (_, index) => line(`p${index}`, index % 2 === 0 ? "a1" : "a2", progress));
  const lines = [
    line("u1", null, said("Read both.")),
    line("a1", "u1", answer("m1", call("one"))),
    line("a2", "a1", answer("m1", call("two"))),
    ...many,
    line("r2", "a2", result("two", "second")),
    line("r1", "a1", result("one", "first")),
    line("a3", "r1", answer("m2", text("Done."))),
  ];
  const { told, usage: spent } = await imported(lines);
  expect(told).toEqual([
    "user: Read both.",
    "assistant:  +one +two",
    ...["tool one: first", "tool two: second", "assistant: Done."],
  ]);
  expect(spent).toMatchObject({ totalTokens: 2010 });
});

test("text beyond the buffer limit between the lines of an answer loses no call, no result and no usage", async () => {
  const large = { ...progress, data: { output: "x".repeat(1024 * 1024) } };
  const many = Array.from({ length: 18 }, (_, index) => line(`p${index}`, index % 2 === 0 ? "a1" : "a2", large));
  const lines = [
    line("u1", null, said("Read all three.")),
    line("a1", "u1", answer("m1", call("one"))),
    line("a2", "a1", answer("m1", call("two"))),
    ...many,
    line("r1", "a1", result("one", "first")),
    line("a3", "a2", answer("m1", call("three"))),
    line("r3", "a3", result("three", "third")),
    line("r2", "a2", result("two", "second")),
    line("a4", "r2", answer("m2", text("Done."))),
  ];
  const { told, usage: spent } = await imported(lines);
  expect(told).toEqual([
    "user: Read all three.",
    ...["assistant:  +one +two", "tool one: first", "tool two: second"],
    ...["assistant:  +three", "tool three: third", "assistant: Done."],
  ]);
  expect(spent).toMatchObject({ totalTokens: 2010 });
});

test("a result that arrives after another answer, such as that of a long command, does not start a branch", async () => {
  const lines = [
    line("u1", null, said("Begin both.")),
    line("a1", "u1", answer("m1", call("long"))),
    line("a2", "a1", answer("m1", call("short"))),
    line("r2", "a2", result("short", "second")),
    line("a3", "r2", answer("m2", text("The other one runs."))),
    line("u2", "a3", said("I wait.")),
    line("r1", "a1", result("long", "first")),
    line("a4", "u2", answer("m3", text("Done."))),
  ];
  const { told } = await imported(lines);
  expect(told).toEqual([
    "user: Begin both.",
    "assistant:  +long +short",
    ...["tool long: first", "tool short: second"],
    ...["assistant: The other one runs.", "user: I wait.", "assistant: Done."],
  ]);
});

test("a line of an answer that arrives after a user message stays on the path, and its usage is not counted again", async () => {
  const lines = [
    line("u1", null, said("Read both.")),
    line("a1", "u1", answer("m1", call("one"))),
    line("u2", "a1", said("And be quick.")),
    line("a2", "a1", answer("m1", call("two"))),
    line("r1", "a1", result("one", "first")),
    line("r2", "a2", result("two", "second")),
    line("a3", "u2", answer("m2", text("Done."))),
  ];
  const { told, usage: spent } = await imported(lines);
  expect(told.toSorted()).toEqual(
    [
      ...["user: Read both.", "assistant:  +one", "tool one: first", "user: And be quick."],
      ...["assistant:  +two", "tool two: second", "assistant: Done."],
    ].toSorted(),
  );
  expect(spent).toMatchObject({ totalTokens: 2010 });
});

test("a late result of an earlier call does not split the answer that is being written", async () => {
  const lines = [
    line("u1", null, said("Begin both.")),
    line("a1", "u1", answer("m1", call("long"))),
    line("a2", "a1", answer("m2", text("The other one runs."))),
    line("r1", "a1", said([{ type: "tool_result", tool_use_id: "long", content: "first" }, text("Be quick.")])),
    line("a3", "r1", answer("m2", call("two"))),
    line("r2", "a3", result("two", "second")),
  ];
  const { told, usage: spent } = await imported(lines);
  expect(told).toEqual([
    "user: Begin both.",
    ...["assistant:  +long", "tool long: first"],
    ...["assistant: The other one runs. +two", "tool two: second", "user: Be quick."],
  ]);
  expect(spent).toMatchObject({ totalTokens: 2010 });
});

test.for([
  ["a repeated line", (lines: readonly string[]) => [lines[0] as string]],
  ["the progress of a tool", () => [line("p1", "b1", progress)]],
  ["a note of a hook", () => [line("s1", "b1", system)]],
  ["words of a skill", () => [line("k1", "b1", { ...said("How to look."), isMeta: true })]],
  ["a snapshot of files", () => [other("file-history-snapshot", { messageId: "x", snapshot: {} })]],
] as const)("%s between a compaction boundary and its summary does not undo the compaction", async ([, between]) => {
  const before = [line("u1", null, said("Begin.")), line("a1", "u1", answer("m1", text("Begun.")))];
  const boundary = { type: "system", subtype: "compact_boundary", logicalParentUuid: "a1", compactMetadata: {} };
  const lines = [
    ...before,
    line("b1", null, boundary),
    ...between(before),
    line("c1", "b1", { ...said("They have begun."), isCompactSummary: true, isVisibleInTranscriptOnly: true }),
    line("u2", "c1", said("Go on.")),
  ];
  await using store = openMemoryStore();
  const id = await importText(store, format, lines.join("\n"));
  const messages = told(await toldIn(store, id)).filter((each) => !each.includes("How to look."));
  expect(messages).toEqual([expect.stringContaining("They have begun."), "user: Go on."]);
  const written = linesOf(await writtenText(format, store, id)).map((each) => JSON.parse(each));
  expect(new Set(written)).toEqual(new Set([...new Set(lines)].map((each) => JSON.parse(each))));
});

test("a compaction boundary without a summary keeps the lines that follow it", async () => {
  const boundary = { type: "system", subtype: "compact_boundary", logicalParentUuid: "u1", compactMetadata: {} };
  const lines = [
    line("u1", null, said("Begin.")),
    line("b1", null, boundary),
    line("p1", "b1", progress),
    line("b2", null, { ...boundary, logicalParentUuid: "p1" }),
    line("p2", "b2", progress),
    line("u2", "p2", said("Go on.")),
  ];
  expect((await imported(lines)).told).toEqual(["user: Begin.", "user: Go on."]);
});

test("a result of a call on an inactive branch stays on that branch", async () => {
  const lines = [
    line("u1", null, said("Begin.")),
    line("a1", "u1", answer("m1", text("Begun."))),
    line("u2", "a1", said("Left.")),
    line("a2", "u2", answer("m2", call("left"))),
    line("u3", "a1", said("Right.")),
    line("r2", "a2", result("left", "nobody reads this")),
    line("a3", "u3", answer("m3", text("Went right."))),
  ];
  const { told } = await imported(lines);
  expect(told).toEqual(["user: Begin.", "assistant: Begun.", "user: Right.", "assistant: Went right."]);
});

const queued = (own: object) => ({ type: "attachment", attachment: { type: "queued_command", ...own } });

test("a message that was queued while the program worked is imported at its position", async () => {
  const lines = [
    line("u1", null, said("Read it.")),
    line("a1", "u1", answer("m1", call("one"))),
    line("q1", "a1", queued({ prompt: "The blue one.", commandMode: "prompt" })),
    line("r1", "a1", result("one", "first")),
    line("q2", "r1", queued({ prompt: [text("With the lid."), { type: "image", source: { type: "url", url: "x" } }] })),
    line("a2", "q2", answer("m2", text("Done."))),
    line("q3", "a2", queued({ prompt: "Command 7 has ended.", commandMode: "task-notification" })),
    line("q4", "q3", queued({ prompt: "" })),
  ];
  const { told, entries } = await imported(lines);
  expect(told).toEqual([
    ...["user: Read it.", "assistant:  +one", "tool one: first"],
    ...["user: The blue one.", "user: With the lid.\n[image]", "assistant: Done.", "user: Command 7 has ended."],
  ]);
  // The program itself informed its model about the command.
  expect(entries.find(({ id }) => id === "q3")).toMatchObject({ type: "custom_message", display: false });
});

test("a message that was queued on another branch is imported on that branch", async () => {
  const lines = [
    line("u1", null, said("Begin.")),
    line("a1", "u1", answer("m1", text("Begun."))),
    line("u2", "a1", said("Left.")),
    line("a2", "u2", answer("m2", text("Went left."))),
    line("q1", "a1", queued({ prompt: "Right.", commandMode: "prompt" })),
    line("a3", "q1", answer("m3", text("Went right."))),
  ];
  const { told } = await imported(lines);
  expect(told).toEqual(["user: Begin.", "assistant: Begun.", "user: Right.", "assistant: Went right."]);
});
