import { expect, test } from "vitest";
import { foreignFormat, writeForeign } from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, goldenFiles, goldenText, importText, linesOf, toldIn, writtenText } from "./foreign-samples.ts";

const openrath = foreignFormat("openrath");
const closed = goldenText("openrath-1.2-closed.jsonl");
const partial = goldenText("openrath-1.2-partial.jsonl");
const recorded = goldenFiles().filter(({ format }) => format === openrath);

const parsed = (text: string): unknown[] => linesOf(text).map((line) => JSON.parse(line));

test.for(recorded)("$name is exported row for row as it was", async ({ text }) => {
  await using store = openMemoryStore();
  expect(parsed(await writtenText(openrath, store, await importText(store, openrath, text)))).toEqual(parsed(text));
});

test("its lineage names sessions of the same user", async () => {
  await using store = openMemoryStore();
  const parentText = closed.replace("abaa14", "abaa15");
  const parent = await importText(store, openrath, parentText);
  const head = await store.head(await importText(store, openrath, closed));
  expect(head?.header.lineage).toEqual({
    parents: [parent],
    operator: "run_session_loop",
    kind: "op_session_loop",
    extras: [["agent", "kettle-finder"]],
  });
});

test("the sandbox of its tools is recorded in an entry, and is not used as the placement", async () => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, openrath, closed);
  expect((await store.head(sessionId))?.header.sandbox).toBe(null);
  const notes = (await entriesOf(store, sessionId)).filter(({ type }) => type === "custom");
  expect(notes).toMatchObject([{ customType: "openrath.placement", data: { backend: "local", handleId: null } }]);
});

test("the usage is in the trailer; a file without a trailer was cut off, and is exported without one", async () => {
  await using store = openMemoryStore();
  const entries = await entriesOf(store, await importText(store, openrath, closed));
  expect(entries.at(-1)).toMatchObject({
    type: "trailer",
    entryCount: 5,
    usage: { inputTokens: 240, outputTokens: 24, totalTokens: 264 },
  });
  const cut = await importText(store, openrath, partial);
  expect((await store.head(cut))?.closed).toBe(false);
  expect(await writtenText(openrath, store, cut)).not.toContain("trailer");
});

test("a session of Skein is exported as the rows of its context, with a trailer", async () => {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "talk" }));
  const say = async (content: string): Promise<string> =>
    (await store.append("talk", [{ type: "message", message: { role: "user", content } }])).entries[0]?.id ?? "";
  await say("Long ago.");
  const firstKeptEntryId = await say("Lately.");
  await store.append("talk", [{ type: "compaction", summary: "It was long ago.", firstKeptEntryId, tokensBefore: 9 }]);
  await say("Now.");
  const { pieces, report } = await writeForeign(openrath, store, "talk");
  let text = "";
  for await (const piece of pieces) text += piece;
  const rows = parsed(text) as { record_type: string; index?: number; payload?: { content: string } }[];
  expect(rows.map(({ record_type }) => record_type)).toEqual(["header", "chunk", "chunk", "chunk", "trailer"]);
  expect(rows.flatMap(({ index }) => index ?? [])).toEqual([0, 1, 2]);
  expect(rows.flatMap(({ payload }) => payload?.content ?? [])).toEqual(["It was long ago.", "Lately.", "Now."]);
  expect([...report.omitted]).toEqual([["entry before a compaction", 1]]);
  await using other = openMemoryStore();
  expect(await toldIn(other, await importText(other, openrath, text))).toHaveLength(3);
});

test("a file that is still being written is a session, too", () => {
  expect(
    ["a.jsonl", "a.jsonl.__partial__", "a.jsonl.tmp", "a.json"].map((path) => openrath.isSessionFile(path)),
  ).toEqual([true, true, false, false]);
});
