import { expect, test } from "vitest";
import { FileImport, type ForeignDraft } from "../../src/interop/formats/index.ts";
import { formatOfText } from "../../src/interop/formats/formats.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, goldenFiles, importText, linesOf, readText, toldIn, writtenText } from "./foreign-samples.ts";

const files = goldenFiles();
const withLines = files.filter(({ format }) => format.unit === "lines");
const MIB = 1024 * 1024;

/** The result of reading, without kept lines: these may occur twice, and then be the parent of other entries. */
function said(entries: readonly ForeignDraft[]): readonly ForeignDraft[] {
  const kept = new Set(entries.flatMap(({ type, id }) => (type === "custom" ? [id] : [])));
  const telling = entries.filter(({ type }) => type !== "custom" && type !== "leaf");
  return telling.map((entry) => (kept.has(entry.parentId ?? "") ? { ...entry, parentId: "kept" } : entry));
}

/** The number of a line in the middle that is part of the context. */
function middleLine(lines: readonly string[]): number {
  const telling = lines.flatMap((line, index) => (line.includes('"role"') && index > 0 ? [index] : []));
  return telling[Math.floor(telling.length / 2)] ?? 1;
}

test.for(files)("the format of $name is detected from its content", ({ format, text }) => {
  expect(formatOfText(text)?.name).toBe(format.name);
});

test.for(files)("$name is read without a loss, and all calls in its context have results", async ({ format, text }) => {
  const { report } = await readText(format, text);
  expect([report.lost, report.doubled]).toEqual([0, 0]);
  await using store = openMemoryStore();
  const messages = await toldIn(store, await importText(store, format, text));
  expect(messages.length).toBeGreaterThan(0);
  expect(JSON.stringify(messages)).not.toContain("was interrupted");
});

test.for(files)("$name is exported so that reading it again gives the same entries", async ({ format, text }) => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, format, text);
  const again = await writtenText(format, store, sessionId);
  await using second = openMemoryStore();
  expect(await toldIn(second, await importText(second, format, again))).toEqual(await toldIn(store, sessionId));
});

test.for(withLines)("$name is the same with the line ends of Windows", async ({ format, text }) => {
  const reading = await readText(format, text);
  expect(await readText(format, text.replaceAll("\n", "\r\n"))).toEqual(reading);
});

test.for(withLines)(
  "$name with its last line cut off loses that line, and gets it once it is complete",
  async ({ format, text }) => {
    const lines = linesOf(text);
    const last = lines.at(-1) as string;
    const cut = `${lines.slice(0, -1).join("\n")}\n${last.slice(0, last.length / 2)}`;
    const { report } = await readText(format, cut);
    expect(report.lostLines).toEqual([{ line: lines.length, reason: "it is cut off or not JSON" }]);
    await using store = openMemoryStore();
    await using whole = openMemoryStore();
    await importText(store, format, cut);
    const sessionId = await importText(store, format, text);
    expect(await toldIn(store, sessionId)).toEqual(await toldIn(whole, await importText(whole, format, text)));
  },
);

test.for(withLines)("$name with a broken line in the middle loses that line and no other", async ({ format, text }) => {
  const lines = linesOf(text);
  const middle = middleLine(lines);
  const broken = lines.map((line, index) => (index === middle ? line.slice(0, -2) : line)).join("\n");
  const [whole, reading] = [await readText(format, text), await readText(format, broken)];
  expect(reading.report.lostLines).toEqual([{ line: middle + 1, reason: "it is cut off or not JSON" }]);
  const ids = new Set(reading.entries.map(({ id }) => id));
  const missing = said(whole.entries).filter(({ id }) => !ids.has(id));
  expect(missing.length).toBeLessThanOrEqual(1);
});

test.for(withLines)("$name adds no entry twice, whichever of its lines is duplicated", async ({ format, text }) => {
  const lines = linesOf(text);
  const whole = said((await readText(format, text)).entries);
  for (const [index, line] of lines.entries()) {
    const doubled = [...lines.slice(0, index + 1), line, ...lines.slice(index + 1)].join("\n");
    const { entries, report } = await readText(format, doubled);
    expect(said(entries)).toEqual(whole);
    expect(report.lines).toBeGreaterThan(0);
  }
});

const oneOfEach = withLines.filter(
  ({ format }, index) => withLines.findIndex((file) => file.format === format) === index,
);

test.for(oneOfEach)("$name keeps a line of 20 MB, and exports it unchanged", async ({ format, text }) => {
  const lines = linesOf(text);
  const long = JSON.stringify({
    type: "unheard-of",
    id: "long",
    uuid: "long",
    payload: "\u{1f9f6}é".repeat((20 * MIB) / 6),
  });
  const middle = middleLine(lines);
  const mixed = [...lines.slice(0, middle), long, ...lines.slice(middle)].join("\n");
  await using store = openMemoryStore();
  await using whole = openMemoryStore();
  const sessionId = await importText(store, format, mixed);
  expect(await toldIn(store, sessionId)).toEqual(await toldIn(whole, await importText(whole, format, text)));
  expect(linesOf(await writtenText(format, store, sessionId)).includes(long)).toBe(true);
});

test.for(files)("$name can be imported again, and nothing is added", async ({ format, text }) => {
  await using store = openMemoryStore();
  const sessionId = await importText(store, format, text);
  const before = await entriesOf(store, sessionId);
  await importText(store, format, text);
  expect(await entriesOf(store, sessionId)).toEqual(before);
});

test.for(withLines)("$name becomes the same session when it is imported as it grows", async ({ format, text }) => {
  await using store = openMemoryStore();
  await using whole = openMemoryStore();
  const bytes = Buffer.from(text);
  const file = new FileImport({ store, userId: "ana" }, format, null);
  for (let from = 0; from < bytes.length; from += 97) {
    await file.write(bytes.subarray(from, from + 97));
    await file.store();
  }
  await file.end();
  const sessionId = await importText(whole, format, text);
  const [grown, atOnce] = [await entriesOf(store, sessionId), await entriesOf(whole, sessionId)];
  expect(grown.map(({ inherited: _inherited, ...entry }) => entry)).toEqual(atOnce);
  expect((await store.head(sessionId))?.leafId).toBe((await whole.head(sessionId))?.leafId);
});
