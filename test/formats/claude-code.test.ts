import { join } from "node:path";
import { expect, test } from "vitest";
import { foreignFormat, writeForeign } from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, goldenText, importText, linesOf, readText, toldIn, writtenText } from "./foreign-samples.ts";

const format = foreignFormat("claude-code");
const sessionId = "4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0001";
let seconds = 0;

/** A line whose parent is another one. */
function line(uuid: string, parentUuid: string | null, own: object): string {
  seconds += 1;
  const timestamp = new Date(Date.UTC(2025, 0, 1) + seconds * 1000).toISOString();
  return JSON.stringify({
    parentUuid,
    isSidechain: false,
    ...own,
    uuid,
    timestamp,
    cwd: "/srv/shop",
    sessionId,
    version: "2",
  });
}

const said = (content: unknown) => ({ type: "user", message: { role: "user", content } });
const result = (id: string, content: string) => said([{ type: "tool_result", tool_use_id: id, content }]);
const answer = (id: string, ...content: object[]) => ({
  type: "assistant",
  message: { id, role: "assistant", model: "m", content, usage: { input_tokens: 5, output_tokens: 7 } },
});
const call = (id: string) => ({ type: "tool_use", id, name: "Read", input: { file: id } });
const text = (words: string) => ({ type: "text", text: words });

test("a recorded session is exported line by line as it was", async () => {
  await using store = openMemoryStore();
  const golden = goldenText("claude-code-2.1.197.jsonl");
  const written = await writtenText(format, store, await importText(store, format, golden));
  expect(linesOf(written).map((each) => JSON.parse(each))).toEqual(linesOf(golden).map((each) => JSON.parse(each)));
});

test("an answer of several lines is one entry whose usage counts once, and all its results are on the path", async () => {
  await using store = openMemoryStore();
  const lines = [
    line("u1", null, said("Read both.")),
    line("a1", "u1", answer("msg", call("one"))),
    line("a2", "a1", answer("msg", call("two"))),
    line("r2", "a2", result("two", "second")),
    line("a3", "a1", answer("msg", text("Reading."))),
    line("r1", "a1", result("one", "first")),
    line("a4", "r2", answer("next", text("Done."))),
  ];
  const id = await importText(store, format, lines.join("\n"));
  expect(await toldIn(store, id)).toMatchObject([
    { role: "user" },
    { content: "Reading.", toolCalls: [{ id: "one" }, { id: "two" }] },
    { toolCallId: "one", content: "first" },
    { toolCallId: "two", content: "second" },
    { content: "Done." },
  ]);
  expect((await store.head(id))?.usage).toMatchObject({ inputTokens: 10, outputTokens: 14 });
});

test("an edited message is a branch, and the leaf is the end of the file", async () => {
  await using store = openMemoryStore();
  const lines = [
    line("u1", null, said("Begin.")),
    line("a1", "u1", answer("m1", text("Begun."))),
    line("u2", "a1", said("Left.")),
    line("a2", "u2", answer("m2", text("Went left."))),
    line("u3", "a1", said("Right.")),
    line("a3", "u3", answer("m3", text("Went right."))),
  ];
  const id = await importText(store, format, lines.join("\n"));
  expect((await toldIn(store, id)).map(({ content }) => content)).toEqual([
    "Begin.",
    "Begun.",
    "Right.",
    "Went right.",
  ]);
  expect((await entriesOf(store, id)).filter(({ parentId }) => parentId === "a1").map((entry) => entry.id)).toEqual([
    "u2",
    "u3",
  ]);
});

test("lines of a sub-agent inside a session's file become a separate session", async () => {
  const lines = [
    line("u1", null, said("Ask someone.")),
    line("s1", null, { ...said("Count."), isSidechain: true }),
    line("a1", "u1", answer("m1", text("Asking."))),
    line("s2", "s1", { ...answer("m2", text("Three.")), isSidechain: true }),
  ];
  const { entries, others, header } = await readText(format, lines.join("\n"));
  expect(entries.map((entry) => entry.id)).toEqual(["u1", "a1"]);
  expect(others.map((other) => [other.header.parentForeignId, other.entries.map((entry) => entry.id)])).toEqual([
    [header.foreignId, ["s1", "s2"]],
  ]);
});

test("a compaction is attached to its logical parent, and keeps what the program has kept", async () => {
  await using store = openMemoryStore();
  const id = await importText(store, format, goldenText("claude-code-2.1.197.jsonl"));
  const told = await toldIn(store, id);
  expect(told[0]?.content).toContain("Someone asked how many files there are.");
  expect(told[1]?.content).toBe("There is one file, and it says hello.");
});

test("titles name the session, and a repeated title adds nothing", async () => {
  await using store = openMemoryStore();
  const title = (words: string) => JSON.stringify({ type: "custom-title", customTitle: words, sessionId });
  const lines = [line("u1", null, said("Begin.")), title("One"), title("One"), title("Two"), title("One")];
  const id = await importText(store, format, lines.join("\n"));
  const names = (await entriesOf(store, id)).flatMap((entry) => (entry.type === "session_info" ? [entry.name] : []));
  expect(names).toEqual(["One", "Two", "One"]);
});

/** The values in a file of Claude Code, line by line. */
const valuesOf = (content: string) => linesOf(content).map((each) => JSON.parse(each));

/** Lines of Claude Code that have no counterpart here. */
const progress = (uuid: string, parentUuid: string) =>
  line(uuid, parentUuid, { type: "progress", data: { type: "x" } });
const note = JSON.stringify({ type: "queue-operation", operation: "enqueue", sessionId });

test.for([
  ["progress", [progress("p1", "a1"), line("a2", "p1", answer("msg", call("two"))), progress("p2", "a2")]],
  ["a result", [line("r1", "a1", result("one", "first")), line("a2", "a1", answer("msg", call("two")))]],
  ["a line without an id", [note, note, line("a2", "a1", answer("msg", call("two")))]],
  [
    "a repeated title",
    [
      JSON.stringify({ type: "custom-title", customTitle: "Kettle", sessionId }),
      ...[progress("p1", "a1"), line("a2", "p1", answer("msg", call("two")))],
    ],
  ],
] as const)(
  "lines of an answer are exported at their original positions, with %s between them",
  async ([, between]) => {
    await using store = openMemoryStore();
    const lines = [
      JSON.stringify({ type: "custom-title", customTitle: "Kettle", sessionId }),
      line("u1", null, said("Read both.")),
      line("a1", "u1", answer("msg", call("one"))),
      ...between,
      line("a3", "a2", answer("msg", call("three"))),
      line("r3", "a3", result("three", "third")),
      line("r2", "a2", result("two", "second")),
      line("u2", "r2", said("Thanks.")),
    ];
    const written = await writtenText(format, store, await importText(store, format, lines.join("\n")));
    const repeated = lines.filter((each, index) => !each.includes("custom-title") || index === 0);
    expect(valuesOf(written)).toEqual(repeated.map((each) => JSON.parse(each)));
  },
);

test("a line of an answer whose parent is not written gets the previous line as its parent", async () => {
  await using store = openMemoryStore();
  const lines = [
    line("u1", null, said("Read both.")),
    line("a1", "u1", answer("msg", call("one"))),
    progress("p1", "a1"),
    line("a2", "p1", answer("msg", call("two"))),
    line("r2", "a2", result("two", "second")),
  ];
  const entries = await entriesOf(store, await importText(store, format, lines.join("\n")));
  const header = createHeader({ userId: "ana" });
  const hidden = entries.filter(({ type }) => type !== "custom");
  await store.create(header, {
    entries: hidden.map((entry, index) => ({ ...entry, parentId: hidden[index - 1]?.id ?? null })),
  });
  const written = valuesOf(await writtenText(format, store, header.id));
  expect(written.map(({ uuid, parentUuid }) => [uuid, parentUuid])).toEqual([
    ["u1", null],
    ["a1", "u1"],
    ["a2", "a1"],
    ["r2", "a2"],
  ]);
});

test("a session of a sub-agent is exported as a main session with an id that the program accepts", async () => {
  await using store = openMemoryStore();
  const golden = goldenText("claude-code-2.1.197-conversation-sub-agent.jsonl");
  const id = await importText(store, format, golden);
  const { handoff } = await writeForeign(format, store, id);
  const [resumed = ""] = handoff.commands.at(-1)?.slice(-1) ?? [];
  expect(resumed).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const written = valuesOf(await writtenText(format, store, id));
  const own = valuesOf(golden).map(({ agentId: _agentId, ...main }) => ({
    ...main,
    ...{ isSidechain: false, sessionId: resumed },
  }));
  expect(written).toEqual(own);
  await using second = openMemoryStore();
  const again = await importText(second, format, written.map((each) => JSON.stringify(each)).join("\n"));
  expect((await second.head(again))?.header.lineage).toMatchObject({ parents: [] });
});

test.for([
  ["shop/4f0c1b7e-3d58-4d0c-9a55-0f6a4a0f0001.jsonl", true],
  ["shop/talk/subagents/agent-a1.jsonl", true],
  ["shop/talk/subagents/workflows/wf_1/agent-a2.jsonl", true],
  ["shop/talk/subagents/workflows/wf_1/journal.jsonl", false],
  ["shop/memory/notes.jsonl", false],
] as const)("whether the file %s is a session: %s", ([path, session]) => {
  expect(format.isSessionFile(join(format.home(), path))).toBe(session);
});
