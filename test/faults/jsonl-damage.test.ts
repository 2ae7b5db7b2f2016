import { appendFile, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { Entry, EntryDraft } from "../../src/session/log/entry.ts";
import { SessionDamagedError } from "../../src/session/errors.ts";
import { createHeader, FORMAT_VERSION } from "../../src/session/log/header.ts";
import { repairFile, sessionFileName } from "../../src/stores/jsonl/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { idsOf, makeDirectory, makeSession, openStore, snapshot, user } from "./jsonl-support.ts";
import { entriesOf } from "./store-support.ts";

const TIME = "2026-01-15T10:30:00.000Z";
const HEADER = createHeader({ id: "a", createdAt: TIME, cwd: "/project", userId: "bob" });

function entry(id: string, parentId: string | null, more: object = {}): object {
  return { type: "message", id, parentId, timestamp: TIME, message: { role: "user", content: id }, ...more };
}

/** A file of these lines, each a text or something to write as JSON. */
async function writeLog(
  directory: string,
  lines: readonly (string | object)[],
  header: string | object = HEADER,
  name = sessionFileName(HEADER),
): Promise<string> {
  const path = join(directory, name);
  const text = [header, ...lines].map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  await writeFile(path, text);
  return path;
}

/** The ids from the root to the leaf. */
function pathTo(entries: readonly Entry[], leafId: string | null): string[] {
  const byId = new Map(entries.map((each) => [each.id, each]));
  const ids: string[] = [];
  for (let id = leafId; id !== null; id = byId.get(id)?.parentId ?? null) ids.unshift(id);
  return ids;
}

const four = ["1", "2", "3", "4"].map((id, index) => entry(id, index === 0 ? null : String(index)));
const [one, two, three, four_] = four as [object, object, object, object];
const without = (text: string) => text.replace('"id":"', '"i@":"').replace('"type":', '"ty@e":');

interface Case {
  readonly name: string;
  readonly lines: readonly (string | object)[];
  readonly line: number;
  readonly reason: RegExp;
  /** The salvaged entries: ids, with a question mark for lost ones. */
  readonly salvaged: readonly string[];
  /** The path to the leaf, when it is not all of them. */
  readonly path?: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: "a line that is no JSON",
    lines: [one, `${JSON.stringify(two).slice(0, 90)}}}`, three, four_],
    line: 3,
    reason: /not JSON/,
    salvaged: ["1", "?2", "3", "4"],
  },
  {
    name: "a line without its id",
    lines: [one, without(JSON.stringify(two)).slice(0, 70), three, four_],
    line: 3,
    reason: /not JSON/,
    salvaged: ["1", "?2", "3", "4"],
  },
  {
    name: "an empty line",
    lines: [one, two, "", three, four_],
    line: 4,
    reason: /not JSON/,
    salvaged: ["1", "2", "?lost-4", "lost-5-leaf", "3", "4"],
    path: ["1", "2", "3", "4"],
  },
  {
    name: "a line that is a text",
    lines: [one, '"two"', three, four_],
    line: 3,
    reason: /not an entry/,
    salvaged: ["1", "?2", "3", "4"],
  },
  { name: "an empty list", lines: [one, "[]", three], line: 3, reason: /empty list/, salvaged: ["1", "?2", "3"] },
  {
    name: "a list with something else in it",
    lines: [[one, 7], entry("3", "1")],
    line: 2,
    reason: /not an entry/,
    salvaged: ["1", "?lost-2", "lost-3-leaf", "3"],
    path: ["1", "3"],
  },
  {
    name: "a list that is broken in one entry",
    lines: [
      `[${JSON.stringify(one)},${JSON.stringify(two).replace('"content"', '"content')},${JSON.stringify(three)}]`,
      four_,
    ],
    line: 2,
    reason: /not JSON/,
    salvaged: ["1", "?2", "3", "4"],
  },
  {
    name: "an entry without a time",
    lines: [one, { ...two, timestamp: "yesterday" }, three],
    line: 3,
    reason: /timestamp/,
    salvaged: ["1", "?2", "3"],
  },
  {
    name: "an entry without its fields",
    lines: [one, { ...two, message: undefined }, three],
    line: 3,
    reason: /message is missing/,
    salvaged: ["1", "?2", "3"],
  },
  {
    name: "a placeholder that was stored",
    lines: [one, { ...two, type: "lost", reason: "x" }, three],
    line: 3,
    reason: /never stored/,
    salvaged: ["1", "?2", "3"],
  },
  {
    name: "an id that is there twice",
    lines: [one, two, entry("1", "2"), entry("3", "2")],
    line: 4,
    reason: /"1" is already used by an earlier entry/,
    salvaged: ["1", "2", "?lost-4", "lost-5-leaf", "3"],
    path: ["1", "2", "3"],
  },
  {
    name: "an id that is in one list twice",
    lines: [[one, entry("1", null)], two],
    line: 2,
    reason: /is already used by an earlier entry/,
    salvaged: ["1", "?lost-2", "2"],
    path: ["1", "2"],
  },
  {
    name: "a line that is missing",
    lines: [one, three, four_],
    line: 3,
    reason: /parent "2" does not come before it/,
    salvaged: ["1", "?2", "3", "4"],
  },
  {
    name: "a cycle",
    lines: [one, entry("2", "3"), three, four_],
    line: 3,
    reason: /parent "3" does not come before it/,
    salvaged: ["1", "?2", "3", "4"],
  },
  {
    name: "an entry that is its own parent",
    lines: [one, entry("2", "2"), three],
    line: 3,
    reason: /parent "2" does not come before it/,
    salvaged: ["1", "?2", "3"],
  },
  {
    name: "a node on a fact",
    lines: [one, { type: "session_info", id: "f", parentId: "1", timestamp: TIME, name: "n" }, entry("2", "f"), three],
    line: 4,
    reason: /is a fact/,
    salvaged: ["1", "f", "?2", "3"],
  },
  {
    name: "a leaf that moves nowhere",
    lines: [one, { type: "leaf", id: "l", parentId: "1", timestamp: TIME, targetId: "nowhere" }, two],
    line: 3,
    reason: /moves the leaf to "nowhere"/,
    salvaged: ["1", "?l", "lost-4-leaf", "2"],
    path: ["1", "2"],
  },
  {
    name: "two lines in a row",
    lines: [one, "{", "}", entry("4", "3")],
    line: 3,
    reason: /not JSON/,
    salvaged: ["1", "?lost-3", "?3", "4"],
  },
];

test.each(cases)(
  "refuses $name, names the position, and salvages the rest",
  async ({ lines, line, reason, salvaged, path: wanted }) => {
    const directory = await makeDirectory();
    const path = await writeLog(directory, lines);
    await writeLog(directory, [entry("x", null)], { ...HEADER, id: "whole" }, "2026-01-15T10-30-00-000Z_whole.jsonl");
    const before = await snapshot(directory);
    const strict = await openStore(directory);
    const error = await strict.head("a").catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(SessionDamagedError);
    const offset =
      Buffer.byteLength(
        (await readFile(path, "utf8"))
          .split("\n")
          .slice(0, line - 1)
          .join("\n"),
      ) + 1;
    expect(error).toMatchObject({ code: "DAMAGED", path, line, offset, reason: expect.stringMatching(reason) });
    await expect(strict.append("a", [user("no")])).rejects.toMatchObject({ code: "DAMAGED" });
    await expect(strict.openFile(path)).rejects.toMatchObject({ code: "DAMAGED" });
    const page = await strict.list();
    expect(page.items.map(({ header }) => header.id)).toEqual(["whole"]);
    expect(page.damaged).toEqual([{ id: "a", path, reason: expect.stringMatching(reason) }]);
    expect(await strict.pathOf("a")).toBe(path);
    expect((await strict.damageOf("a")).length).toBeGreaterThan(0);

    const open = await openStore(directory, { salvage: true });
    expect(await open.openFile(path)).toBe("a");
    const entries = await entriesOf(open);
    expect(entries.map(({ id, type }) => (type === "lost" ? `?${id}` : id))).toEqual(salvaged);
    const head = await open.head("a");
    expect(pathTo(entries, head?.leafId ?? null)).toEqual(
      wanted ?? entries.filter(({ type }) => type !== "session_info").map(({ id }) => id),
    );
    const damage = await open.damageOf("a");
    expect(damage[0]).toMatchObject({ line, offset, reason: expect.stringMatching(reason) });
    expect(damage.map(({ entryId }) => `?${entryId}`)).toEqual(salvaged.filter((id) => id.startsWith("?")));
    expect((await open.list()).items.length).toBe(2);
    for (const each of entries) expect(await open.getEntry("a", each.id)).toEqual(each);
    expect(await idsOf(open, "a", { reverse: true, after: 0, limit: 2 })).toEqual(
      entries
        .slice(1)
        .map(({ id }) => id)
        .reverse()
        .slice(0, 2),
    );
    await checkHeadIsFold(open, "a");
    await expect(open.append("a", [user("no")])).rejects.toMatchObject({ code: "READ_ONLY" });
    expect(await snapshot(directory)).toEqual(before);
  },
);

test.each(cases)("repairs $name permanently, and keeps the bytes", async ({ lines, salvaged }) => {
  const directory = await makeDirectory();
  const path = await writeLog(directory, lines);
  const salvage = await openStore(directory, { salvage: true });
  const shown = await entriesOf(salvage);
  const leafId = (await salvage.head("a"))?.leafId;
  const damage = await salvage.damageOf("a");
  const report = await repairFile(path);
  expect(report).toMatchObject({ path, sessionId: "a", damage });
  const store = await openStore(directory);
  const entries = await entriesOf(store);
  expect(entries.map(({ id, parentId }) => [id, parentId])).toEqual(shown.map(({ id, parentId }) => [id, parentId]));
  for (const [index, each] of entries.entries()) {
    if (shown[index]?.type !== "lost") expect(each).toEqual(shown[index]);
    else expect(each).toMatchObject({ type: "custom", customType: "skein.lost", data: { reason: expect.any(String) } });
  }
  expect((await store.head("a"))?.leafId).toBe(leafId);
  await store.append("a", [user("on it goes")]);
  await checkHeadIsFold(store, "a");
  const sides = (await readdir(directory)).filter((name) => name.includes(".damaged-"));
  expect(sides.map((name) => join(directory, name))).toEqual(report.sideFile === null ? [] : [report.sideFile]);
  if (!salvaged.includes("?2") || report.sideFile !== null)
    expect((await readFile(report.sideFile as string)).length).toBeGreaterThan(0);
  expect(await repairFile(path)).toMatchObject({ damage: [], sideFile: null });
});

test("finds three damaged bytes in the middle of a large file, before and after the end of the index", async () => {
  const directory = await makeDirectory();
  const drafts = Array.from({ length: 150 }, (_, i): EntryDraft => user(`${i} ${"x".repeat(5000)}`, `e${i}`));
  const { store, path } = await makeSession(directory, drafts);
  await store.close();
  const bytes = await readFile(path);
  const at = bytes.indexOf('"id":"e70"') + 60;
  bytes.set([0xff, 0xfe, 0x00], at);
  await writeFile(path, bytes);
  const before = await snapshot(directory);
  const strict = await openStore(directory);
  await expect(strict.head("a")).rejects.toMatchObject({ code: "DAMAGED", line: 72, reason: "it is not UTF-8" });
  const salvage = await openStore(directory, { salvage: true });
  const entries = await entriesOf(salvage);
  expect(entries.map(({ id }) => id)).toEqual(drafts.map(({ id }) => id));
  expect(entries.filter(({ type }) => type === "lost").map(({ id }) => id)).toEqual(["e70"]);
  expect((await salvage.head("a"))?.path.depth).toBe(150);
  expect(await snapshot(directory)).toEqual(before);
});

test("salvages a file whose header is damaged, by its name", async () => {
  const directory = await makeDirectory();
  const path = await writeLog(directory, four, JSON.stringify(HEADER).slice(0, 50));
  const strict = await openStore(directory);
  await expect(strict.head("a")).rejects.toMatchObject({ code: "DAMAGED", line: 1, offset: 0 });
  const salvage = await openStore(directory, { salvage: true });
  expect(await idsOf(salvage)).toEqual(["1", "2", "3", "4"]);
  expect((await salvage.head("a"))?.header).toMatchObject({ id: "a", createdAt: TIME, userId: null });
  expect(await salvage.damageOf("a")).toEqual([expect.objectContaining({ line: 1, offset: 0, entryId: null })]);
  await repairFile(path);
  expect(await idsOf(strict)).toEqual(["1", "2", "3", "4"]);
});

test.each([
  ["an empty file", "", "NOT_A_SESSION"],
  ["a text", "Dear diary,\n", "NOT_A_SESSION"],
  ["another tool's lines", '{"role":"user","content":"hi"}\n', "NOT_A_SESSION"],
  ["entries without a header", `${JSON.stringify(one)}\n`, "NOT_A_SESSION"],
  [
    "a later version",
    `${JSON.stringify({ ...HEADER, version: FORMAT_VERSION + 1 })}\n{"what":"ever"}\n`,
    "UNSUPPORTED_VERSION",
  ],
] as const)("refuses %s by name, lists it as such, and leaves it alone", async (_, text, code) => {
  const directory = await makeDirectory();
  const path = join(directory, "foreign.jsonl");
  await writeFile(path, text);
  const { store } = await makeSession(directory);
  await store.close();
  for (const salvage of [false, true]) {
    const again = await openStore(directory, { salvage, readOnly: true });
    const before = await snapshot(directory);
    await expect(again.openFile(path)).rejects.toMatchObject({ code, message: expect.stringMatching(/\.$/) });
    const { items, damaged } = await again.list();
    expect(items.map(({ header }) => header.id)).toEqual(["a"]);
    expect(damaged).toEqual([{ id: null, path, reason: expect.any(String) }]);
    expect(await snapshot(directory)).toEqual(before);
  }
});

test("opens a file with any name, anywhere, and continues it", async () => {
  const directory = await makeDirectory();
  const elsewhere = await makeDirectory();
  const path = await writeLog(elsewhere, four, HEADER, "My Session.txt");
  const store = await openStore(directory);
  expect(await store.openFile(path)).toBe("a");
  await store.append("a", [user("five", "5")]);
  expect(await idsOf(store)).toEqual(["1", "2", "3", "4", "5"]);
  expect(await store.pathOf("a")).toBe(path);
  expect(JSON.parse((await readFile(path, "utf8")).trimEnd().split("\n").at(-1) as string).id).toBe("5");
  // A file name that listings ignore, in the store's directory.
  const hidden = await writeLog(directory, four, { ...HEADER, id: "hidden" }, "hidden.txt");
  expect([await store.openFile(hidden), await store.openFile(hidden)]).toEqual(["hidden", "hidden"]);
  expect((await store.list()).items).toEqual([]);
  await store.append("hidden", [user("five", "5")]);
  expect(await idsOf(store, "hidden")).toEqual(["1", "2", "3", "4", "5"]);
  const inside = await writeLog(directory, four, { ...HEADER, id: "b" }, "odd name.jsonl");
  expect(await idsOf(store, "b")).toEqual(["1", "2", "3", "4"]);
  expect(await store.pathOf("b")).toBe(inside);
  await expect(store.create(createHeader({ id: "b" }))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  await expect(store.openFile(join(directory, "nowhere.jsonl"))).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});

test("lists a file that a run still writes, and recognizes it when it gets its final name", async () => {
  const directory = await makeDirectory();
  const partial = await writeLog(directory, four, HEADER, `${sessionFileName(HEADER)}.__partial__`);
  const store = await openStore(directory);
  expect((await store.list()).items.map(({ header }) => header.id)).toEqual(["a"]);
  await store.append("a", [user("five", "5")]);
  const point = {
    id: "c",
    sessionId: "a",
    version: 5,
    leafId: "5",
    createdAt: TIME,
    parentCheckpointId: null,
    metadata: {},
  };
  await store.saveCheckpoint(point);
  const final = partial.replace(".__partial__", "");
  await rename(partial, final);
  await new Promise((resolve) => setTimeout(resolve, 40));
  await store.append("a", [user("six", "6")]);
  expect(await idsOf(store)).toEqual(["1", "2", "3", "4", "5", "6"]);
  expect((await stat(final)).size).toBeGreaterThan(0);
  expect((await store.list()).damaged).toEqual([]);
  expect(await store.listCheckpoints("a")).toEqual([point]);
});

test("reports which of two files with one session is not shown", async () => {
  const directory = await makeDirectory();
  await writeLog(directory, four);
  const copy = await writeLog(directory, four, HEADER, "copy.jsonl");
  const store = await openStore(directory);
  const { items, damaged } = await store.list();
  expect(items.length).toBe(1);
  expect(damaged.map(({ reason }) => reason).join()).toContain("is also in");
  expect(await idsOf(store)).toEqual(["1", "2", "3", "4"]);
  expect(basename(dirname(copy))).toBe(basename(directory));
});

test("damage that occurs while a session is open is found by the next read, not folded", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory, [user("one", "1")]);
  await new Promise((resolve) => setTimeout(resolve, 40));
  await appendFile(path, "garbage\n");
  await expect(store.head("a")).rejects.toMatchObject({ code: "DAMAGED", line: 3 });
  await expect(idsOf(store)).rejects.toMatchObject({ code: "DAMAGED", line: 3 });
  await expect(store.append("a", [user("two")])).rejects.toMatchObject({ code: "DAMAGED", line: 3 });
});

test.for([
  ["an entry", [one, "{broken", three], HEADER, SyntaxError],
  ["an entry that is cut off", [one, JSON.stringify(two).slice(0, 40), three], HEADER, SyntaxError],
  ["the header", [one], `${JSON.stringify(HEADER).slice(0, 60)},}`, SyntaxError],
  ["nothing, but an entry without a parent", [one, entry("x", "nowhere")], HEADER, undefined],
] as const)("the error of a line that is no JSON is the cause of the damage: %s", async ([, lines, header, cause]) => {
  const directory = await makeDirectory();
  const path = await writeLog(directory, lines, header);
  const store = await openStore(directory);
  const error = await store.openFile(path).catch((thrown: unknown) => thrown as SessionDamagedError);
  expect(error).toBeInstanceOf(SessionDamagedError);
  const found = (error as SessionDamagedError).cause;
  if (cause === undefined) expect(found).toBeUndefined();
  else expect(found).toBeInstanceOf(cause);
});
