import { open, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHead } from "../../src/session/log/fold.ts";
import { FORMAT_VERSION } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { copySession } from "../../src/stores/copy/copy-session.ts";
import { stampOf, withChecksum } from "../../src/stores/jsonl/log-index.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { start } from "./program-support.ts";
import { idsOf, makeDirectory, makeSession, openStore, snapshot, user } from "./jsonl-support.ts";

/** Long enough that a few entries have an index. */
const LONG = "x".repeat(30_000);
const THIS_VERSION = new RegExp(`^{"type":"session","version":${FORMAT_VERSION},`);
const VERSION_AT = '{"type":"session","version":'.length;

async function setVersion(path: string, version: string): Promise<void> {
  const handle = await open(path, "r+");
  await handle.write(version, VERSION_AT);
  await handle.close();
}

/** A directory with a session `a` as an earlier version left it. */
async function makeOld(count = 3, text = "hi", version = "1"): Promise<{ directory: string; path: string }> {
  const directory = await makeDirectory();
  const drafts = Array.from({ length: count }, (_, index) => user(text, `e${index}`));
  const { store, path } = await makeSession(directory, drafts, { metadata: { team: "a" } });
  await store.close();
  await setVersion(path, version);
  return { directory, path };
}

async function versionOf(store: SessionStore): Promise<number | undefined> {
  return (await store.head("a"))?.header.version;
}

async function firstLine(path: string): Promise<string> {
  return (await readFile(path, "utf8")).split("\n", 1)[0] as string;
}

function indexOf(path: string): string {
  return join(dirname(path), ".index", `${basename(path)}.idx`);
}

test("writes new files in this version, also forks and copies of older ones", async () => {
  const { directory } = await makeOld();
  const store = await openStore(directory);
  const { header } = (await store.head("a")) as SessionHead;
  await store.fork("a", { ...header, id: "fork" });
  const copies = await openStore(await makeDirectory());
  await copySession(store, copies, "a");
  for (const [kept, id] of [
    [store, "fork"],
    [copies, "a"],
  ] as const) {
    expect((await kept.head(id))?.header.version).toBe(FORMAT_VERSION);
    expect(await firstLine((await kept.pathOf(id)) as string)).toMatch(THIS_VERSION);
  }
  expect(await versionOf(store)).toBe(1);
});

test.each(["1", "2"])("raises a file of version %s with the first entry that it adds, by one byte", async (old) => {
  const { directory, path } = await makeOld(3, "hi", old);
  const before = await readFile(path, "utf8");
  const { ino } = await stat(path);
  const store = await openStore(directory);
  const digest = await digestOf(store, "a");
  expect(await versionOf(store)).toBe(Number(old));
  // Neither a lease nor an append without entries changes the version.
  await (await store.lease("a", "r", 60_000)).release();
  await store.append("a", [user("hi", "e2")]);
  await expect(store.append("a", [user("new")], { expectedVersion: 1 })).rejects.toMatchObject({ code: "CONFLICT" });
  expect(await readFile(path, "utf8")).toBe(before);
  const { head } = await store.append("a", [user("new", "new")]);
  expect(head.header.version).toBe(FORMAT_VERSION);
  const after = await readFile(path, "utf8");
  expect(after.slice(0, before.length)).toBe(before.replace(`"version":${old}`, `"version":${FORMAT_VERSION}`));
  expect((await stat(path)).ino).toBe(ino);
  expect(await digestOf(store, "a", { version: 3 })).toEqual(digest);
  await checkHeadIsFold(store, "a");
});

test("two processes that have a file open raise its version once, and both notice", async () => {
  const { directory, path } = await makeOld(12, LONG);
  const [one, other] = [await openStore(directory), await openStore(directory)];
  for (const store of [one, other]) expect(await idsOf(store)).toHaveLength(12);
  await one.append("a", [user("one", "one")]);
  expect(await versionOf(other)).toBe(FORMAT_VERSION);
  await Promise.all(["x", "y", "z"].flatMap((id) => [one.append("a", [user(id)]), other.append("a", [user(id)])]));
  expect(await Promise.all([one, other].map(versionOf))).toEqual([FORMAT_VERSION, FORMAT_VERSION]);
  expect(await idsOf(one)).toEqual(await idsOf(other));
  await Promise.all([one.close(), other.close()]);
  expect(await firstLine(path)).toMatch(THIS_VERSION);
  const later = await openStore(directory);
  expect(await idsOf(later)).toHaveLength(19);
  await checkHeadIsFold(later, "a");
});

test("keeps the index of a file whose version it raises", async () => {
  const { directory, path } = await makeOld(40, LONG);
  // A file that was changed in place is read completely; this one has the form of the first version.
  const [line] = (await readFile(indexOf(path), "utf8")).split("\n");
  expect(line).toContain('"format"');
  await writeFile(indexOf(path), `${line}\n${withChecksum(stampOf(await stat(path)))}`);
  for (let round = 1; round <= 2; round++) {
    const store = await openStore(directory);
    await store.append("a", [user("one"), user("two"), user("three")]);
    expect(await versionOf(store)).toBe(FORMAT_VERSION);
    await store.close();
  }
  expect((await readFile(indexOf(path), "utf8")).split("\n")[0]).toBe(line);
  const last = await openStore(directory);
  expect(await idsOf(last)).toHaveLength(46);
  await checkHeadIsFold(last, "a");
});

test.for([3, 40])("continues after a kill between the byte and the entry, in a file of %i entries", async (count) => {
  const { directory, path } = await makeOld(count, LONG);
  const before = await openStore(directory);
  expect(await versionOf(before)).toBe(1);
  await setVersion(path, String(FORMAT_VERSION));
  for (const store of [before, await openStore(directory)]) {
    expect(await versionOf(store)).toBe(FORMAT_VERSION);
    await store.append("a", [user("more")]);
    await checkHeadIsFold(store, "a");
  }
  expect(await idsOf(before)).toHaveLength(count + 2);
});

test("processes that append to an old file concurrently raise its version, and lose nothing when they are killed", async () => {
  const { directory, path } = await makeOld();
  const store = await openStore(directory);
  for (let round = 1; round <= 4; round++) {
    await setVersion(path, "1");
    const both = ["x", "y"].map((tag) =>
      start("write.mjs", [`jsonl:${directory}`, "a", `${tag}${round}`, "100000", "1"]),
    );
    const done = (): string[] => both.flatMap(({ lines }) => lines().filter((line) => line.startsWith("done ")));
    while (done().length < round) await Promise.race(both.map(({ more }) => more()));
    for (const { child, ended } of both) {
      child.kill("SIGKILL");
      await ended;
    }
    expect(both.flatMap(({ lines }) => lines().filter((line) => line.startsWith("wrong ")))).toEqual([]);
    expect(await versionOf(store)).toBe(FORMAT_VERSION);
    expect(await idsOf(store)).toEqual(expect.arrayContaining(done().flatMap((line) => line.split(" ").slice(3))));
  }
  await store.append("a", [user("last")]);
  await checkHeadIsFold(store, "a");
});

test("looks at the first line itself before it raises it, as that may be of a later version by now", async () => {
  const { directory, path } = await makeOld();
  const time = new Date("2026-01-15T10:30:00.000Z");
  await utimes(path, time, time);
  const store = await openStore(directory);
  expect(await versionOf(store)).toBe(1);
  const handle = await open(path, "r+");
  await handle.write(String(FORMAT_VERSION + 1), VERSION_AT);
  // Simulates two changes within one tick of the file system's clock.
  await handle.utimes(time, time);
  await handle.close();
  await expect(store.append("a", [user("new")])).rejects.toMatchObject({ code: "UNSUPPORTED_VERSION" });
  expect(await firstLine(path)).toContain(`"version":${FORMAT_VERSION + 1},`);
});

const edits: Readonly<Record<string, (line: string) => string>> = {
  "a carriage return": (line) => `${line}\r`,
  spaces: (line) => line.replaceAll('":', '": ').replace("{", "{ "),
  "a number with a point": (line) => line.replace('"version":1', '"version":1.0'),
  "a version in the metadata before its own": (line) =>
    line.replace('"version":1,', "").replace('"metadata":{"team":"a"}', '"metadata":{"version":1},"version":1'),
  "the version twice": (line) => line.replace('"version":1', '"version":2,"version":1'),
};

test.for(Object.entries(edits))("raises a header with %s, and keeps all that follows", async ([, edit]) => {
  const { directory, path } = await makeOld();
  const [header = "", ...lines] = (await readFile(path, "utf8")).split("\n");
  expect(edit(header)).not.toBe(header);
  await writeFile(path, [edit(header), ...lines].join("\n"));
  const [store, other] = [await openStore(directory), await openStore(directory)];
  const { header: old } = (await store.head("a")) as SessionHead;
  expect(old.version).toBe(1);
  await other.head("a");
  await Promise.all([store.append("a", [user("new", "new")]), store.append("a", [user("newer", "newer")])]);
  await other.append("a", [user("other", "other")]);
  for (const each of [store, other, await openStore(directory)]) {
    expect(await idsOf(each)).toEqual(["e0", "e1", "e2", "new", "newer", "other"]);
    expect((await each.head("a"))?.header).toEqual({ ...old, version: FORMAT_VERSION });
  }
  await checkHeadIsFold(store, "a");
});

test("changes nothing of an old file where it may only read", async () => {
  const { directory } = await makeOld();
  for (const options of [{ readOnly: true }, { salvage: true }]) {
    const before = await snapshot(directory);
    const store = await openStore(directory, options);
    expect(await idsOf(store)).toHaveLength(3);
    expect((await store.list()).items.map(({ header }) => header.version)).toEqual([1]);
    await expect(store.append("a", [user("new")])).rejects.toMatchObject({ code: "READ_ONLY" });
    await store.close();
    expect(await snapshot(directory)).toEqual(before);
  }
});

test("a copy continues after its source was raised", async () => {
  const { directory } = await makeOld();
  const store = await openStore(directory);
  const copies = openMemoryStore();
  await copySession(store, copies, "a");
  expect(await versionOf(copies)).toBe(1);
  await store.append("a", [user("new", "new")]);
  expect(await versionOf(store)).toBe(FORMAT_VERSION);
  const { digest, appended } = await copySession(store, copies, "a");
  expect(appended).toBe(1);
  for (const each of [store, copies]) expect((await digestOf(each, "a"))?.digest).toBe(digest);
});
