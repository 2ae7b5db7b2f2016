import { appendFile, copyFile, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { AppendOptions, SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { walkUp } from "../../src/tree/path-reader.ts";
import { idsOf, makeDirectory, makeSession, openStore, user } from "./jsonl-support.ts";
import { entriesOf } from "./store-support.ts";

/** Long enough that a few entries have an index. */
const LONG = "x".repeat(30_000);

function indexOf(path: string): string {
  return join(dirname(path), ".index", `${basename(path)}.idx`);
}

/** Everything that a store returns about a session. */
async function tell(store: SessionStore, ids: readonly string[]) {
  const { updatedAt: _, ...head } = (await store.head("a")) as NonNullable<Awaited<ReturnType<typeof store.head>>>;
  const entries = await entriesOf(store);
  const middle = Math.floor(entries.length / 2);
  return {
    head,
    entries,
    backward: await idsOf(store, "a", { reverse: true }),
    middle: await idsOf(store, "a", { after: middle, limit: 3 }),
    middleBackward: await idsOf(store, "a", { before: middle, limit: 3, reverse: true }),
    found: await Promise.all(ids.map((id) => store.getEntry("a", id))),
    paths: await Promise.all(ids.map((id) => store.path("a", id))),
  };
}

const place = fc.nat(1000);
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("say" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("move" as const), to: fc.option(place) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("onto" as const), to: place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("label" as const), to: place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("set" as const), to: place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("retry" as const), to: place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("reopen" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("other" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("spoil" as const),
      how: fc.constantFrom("remove", "truncate", "garbage", "flip", "older", "tail"),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

/** Damages an index as a crash, a bug or a user could. */
async function spoil(path: string, how: string, at: number, older: Buffer | null): Promise<void> {
  const index = indexOf(path);
  const bytes = await readFile(index).catch(() => null);
  if (bytes === null || bytes.length === 0) return;
  const offset = Math.min(bytes.length - 1, Math.floor(at * bytes.length));
  if (how === "remove") await rm(index);
  if (how === "truncate") await truncate(index, offset);
  if (how === "garbage") await writeFile(index, "no index at all\n");
  if (how === "tail") await appendFile(index, '12345678 {"half');
  if (how === "older" && older !== null) await writeFile(index, older);
  if (how === "flip") {
    bytes[offset] = (bytes[offset] as number) ^ 1;
    await writeFile(index, bytes);
  }
}

test("the read log is the same with a valid, old, missing or damaged index", async () => {
  const check = async (steps: readonly Parameters<Parameters<typeof step.map>[0]>[0][]): Promise<void> => {
    const directory = await makeDirectory();
    const model = openMemoryStore();
    let store = await openJsonlStore({ directory });
    const header = createHeader({ id: "a" });
    for (const each of [model, store]) await each.create(header);
    const path = (await store.pathOf("a")) as string;
    const ids: string[] = [];
    let older: Buffer | null = null;
    const append = async (drafts: readonly EntryDraft[], options?: AppendOptions): Promise<void> => {
      const stamped = drafts.map((draft) => ({ ...draft, timestamp: "2026-01-01T00:00:00.000Z" }));
      const both = await Promise.allSettled([model, store].map((each) => each.append("a", stamped, options)));
      const [expected, actual] = both.map((one) => (one.status === "fulfilled" ? one.value.entries : one.reason.code));
      expect(actual).toEqual(expected);
      if (both[0]?.status === "fulfilled")
        for (const { id } of drafts) if (id !== undefined && !ids.includes(id)) ids.push(id);
    };
    const some = (to: number): string => ids[to % Math.max(1, ids.length)] ?? "none";
    for (const [index, one] of steps.entries()) {
      const id = `e${index}`;
      if (one.kind === "say")
        await append(Array.from({ length: one.count }, (_, i) => user(`${LONG}${i}`, `${id}.${i}`)));
      if (one.kind === "move") await append([{ type: "leaf", id, targetId: one.to === null ? null : some(one.to) }]);
      if (one.kind === "onto") await append([user("onto", id)], { onto: some(one.to) });
      if (one.kind === "label") await append([{ type: "label", id, targetId: some(one.to), label: "here" }]);
      if (one.kind === "set") await append([{ type: "variables", id, set: { [`k${one.to % 3}`]: index }, unset: [] }]);
      if (one.kind === "retry") await append([user("onto", some(one.to))]);
      if (one.kind === "other") {
        await using other = await openJsonlStore({ directory });
        await other.append("a", [user("from elsewhere", id)]);
        await model.append("a", [user("from elsewhere", id)]);
        ids.push(id);
        await model.append("a", [
          { type: "session_info", id: `${id}n`, name: "n", timestamp: "2026-01-01T00:00:00.000Z" },
        ]);
        await other.append("a", [
          { type: "session_info", id: `${id}n`, name: "n", timestamp: "2026-01-01T00:00:00.000Z" },
        ]);
      }
      if (one.kind === "spoil" || one.kind === "reopen") {
        await store.close();
        if (one.kind === "spoil") await spoil(path, one.how, one.at, older);
        older = await readFile(indexOf(path)).catch(() => null);
        store = await openJsonlStore({ directory });
      }
    }
    const untimed = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (key, item) => (key === "timestamp" || key === "modifiedAt" ? 0 : item)));
    const wanted = untimed(await tell(model, ids));
    expect(untimed(await tell(store, ids))).toEqual(wanted);
    await store.close();
    await using again = await openJsonlStore({ directory, readOnly: true });
    expect(untimed(await tell(again, ids))).toEqual(wanted);
    await rm(join(directory, ".index"), { recursive: true, force: true });
    await using bare = await openJsonlStore({ directory, readOnly: true });
    expect(untimed(await tell(bare, ids))).toEqual(wanted);
    await model.close();
    await rm(directory, { recursive: true, force: true });
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 25, maxLength: 45 }), check), { numRuns: 30, seed: 11 });
});

test("an index of another session, or of the file before it was rewritten, is not used", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  await store.create(createHeader({ id: "b" }));
  for (let i = 0; i < 40; i++) {
    await store.append("a", [user(LONG, `a${i}`)]);
    await store.append("b", [user(LONG, `b${i}`)]);
  }
  const other = (await store.pathOf("b")) as string;
  await store.close();
  expect((await stat(indexOf(path))).size).toBeGreaterThan(300);
  await copyFile(indexOf(other), indexOf(path));
  const again = await openStore(directory);
  expect((await idsOf(again)).length).toBe(40);
  expect(await again.getEntry("a", "a3")).toMatchObject({ id: "a3" });
  expect(await again.getEntry("a", "b3")).toBeNull();
  // The same file, rewritten with the same size: only its time differs.
  await again.close();
  const bytes = await readFile(path);
  await writeFile(
    path,
    bytes.toString().replaceAll('"id":"a3"', '"id":"z3"').replaceAll('"parentId":"a3"', '"parentId":"z3"'),
  );
  const third = await openStore(directory);
  expect(await third.getEntry("a", "a3")).toBeNull();
  expect(await third.getEntry("a", "z3")).toMatchObject({ id: "z3" });
  await checkHeadIsFold(third, "a");
});

test("an index with a piece missing, or of a file that was rewritten in place and grew, is not believed", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  for (let i = 0; i < 84; i++) await store.append("a", [user(LONG, `e${i}`)]);
  await store.close();
  const first = await openStore(directory);
  await first.append("a", [user("short", "e84")]);
  await first.close();
  const lines = (await readFile(indexOf(path), "utf8")).split("\n");
  expect(lines).toHaveLength(3);
  await writeFile(indexOf(path), lines.toSpliced(0, 1).join("\n"));
  const second = await openStore(directory);
  for (const i of [0, 20, 40, 84]) expect(await second.getEntry("a", `e${i}`)).toMatchObject({ id: `e${i}`, seq: i });
  expect((await second.path("a", "e30"))?.depth).toBe(31);
  await second.close();
  await writeFile(indexOf(path), lines.join("\n"));
  // The same header and file, other entries of the same lengths, and one more.
  const text = (await readFile(path, "utf8")).replaceAll(/"e(\d+)"/g, '"f$1"');
  const last = text.trimEnd().split("\n").at(-1) as string;
  await writeFile(path, `${text}${last.replace('"f84"', '"f85"').replace('"f83"', '"f84"')}\n`);
  const third = await openStore(directory);
  expect((await idsOf(third)).at(-1)).toBe("f85");
  expect(await third.head("a")).toMatchObject({ leafId: "f85", version: 86, path: { depth: 86 } });
  expect(await third.getEntry("a", "e3")).toBeNull();
  await checkHeadIsFold(third, "a");
});

test("reads only the needed parts of a large session, and finds damage in the rest when it gets there", async () => {
  const directory = await makeDirectory();
  const time = new Date("2026-01-15T10:30:00.000Z");
  const store = await openStore(directory, { clock: () => time });
  await store.create(createHeader({ id: "a" }));
  for (let i = 0; i < 60; i++) await store.append("a", [user(LONG, `e${i}`)]);
  const path = (await store.pathOf("a")) as string;
  await store.close();
  const bytes = await readFile(path);
  const offset = bytes.indexOf('"id":"e10"');
  bytes[bytes.indexOf("xxxx", offset)] = 0xff;
  await writeFile(path, bytes);
  // With its old time, the change of the file is not visible from outside.
  const left = (time.getTime() + 0.5) / 1000;
  await utimes(path, left, left);
  const again = await openStore(directory);
  expect(await again.head("a")).toMatchObject({ version: 60, updatedAt: time.toISOString() });
  expect(await idsOf(again, "a", { reverse: true, limit: 2 })).toEqual(["e59", "e58"]);
  expect(await idsOf(again, "a", { limit: 2 })).toEqual(["e0", "e1"]);
  // A path is walked with one read, however many entries it has.
  const above: string[] = [];
  for await (const { id } of walkUp(again, "a", "e59")) if (above.push(id) === 40) break;
  expect(above.at(-1)).toBe("e20");
  await expect(idsOf(again)).rejects.toMatchObject({ code: "DAMAGED", line: 12, reason: "it is not UTF-8" });
  // The first page from its middle reads the whole log, as the first look-up by id does.
  await expect(idsOf(again, "a", { after: 19, limit: 1 })).rejects.toMatchObject({ code: "DAMAGED", line: 12 });
  await expect(again.getEntry("a", "e20")).rejects.toMatchObject({ code: "DAMAGED", line: 12 });
  // With a new time, it is read completely before the index is used.
  await utimes(path, time, new Date());
  await expect(again.head("a")).rejects.toMatchObject({ code: "DAMAGED", line: 12 });
});

test("a large session that is created in one call, or forked, has an index for the next reader", async () => {
  const directory = await makeDirectory();
  const store = await openStore(directory);
  const said = [user(LONG), user(LONG), user(LONG)];
  await store.create(createHeader({ id: "plain" }), { entries: said });
  await store.create(createHeader({ id: "set" }), {
    entries: [...said, { type: "variables", set: { x: 1 }, unset: [] }],
  });
  await store.fork("plain", createHeader({ id: "fork" }));
  for (const id of ["plain", "set", "fork"]) {
    const path = (await store.pathOf(id)) as string;
    const index = await readFile(indexOf(path), "utf8");
    expect(JSON.parse(index.slice(9)), id).toMatchObject({ offset: (await stat(path)).size });
    const other = await openStore(directory);
    expect(await other.head(id)).toEqual(await store.head(id));
  }
});

test("reads a large session page by page, either way, and forks it within an append, as one that was read through", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory);
  // Three entries of one append, then one, and so on: pages of two end within appends and between them.
  for (let i = 0; i < 12; i++) {
    await store.append(
      "a",
      ["x", "y", "z"].map((letter) => user(LONG, `${letter}${i}`)),
    );
    await store.append("a", [user(LONG, `one${i}`)]);
  }
  const ids = await idsOf(store);
  await store.close();
  const again = await openStore(directory);
  const forward: string[] = [];
  const backward: string[] = [];
  for (let at = 0; at < ids.length; at += 2) {
    forward.push(...(await idsOf(again, "a", { after: at - 1, limit: 2 })));
    backward.push(...(await idsOf(again, "a", { before: ids.length - at, limit: 2, reverse: true })));
  }
  expect(forward).toEqual(ids);
  expect(backward).toEqual(ids.toReversed());
  await again.fork("a", createHeader({ id: "f" }), { at: "y5" });
  expect(await idsOf(again, "f")).toEqual(ids.slice(0, ids.indexOf("y5") + 1));
  await checkHeadIsFold(again, "f");
});

test("notices a cut, a growth, a new file and a lost file behind its back", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory, [user("one", "1"), user("two", "2")]);
  const reader = await openStore(directory, { readOnly: true });
  expect(await idsOf(reader)).toEqual(["1", "2"]);
  const rested = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));
  await rested();
  const bytes = await readFile(path);
  const lastLine = bytes.lastIndexOf(10, bytes.length - 2) + 1;
  await truncate(path, lastLine);
  for (const each of [reader, store]) expect(await idsOf(each)).toEqual(["1"]);
  // Longer than before, but with other contents than before it was cut.
  const more = ["3", "4"].map((id, index) => ({
    type: "message",
    id,
    parentId: index === 0 ? "1" : "3",
    timestamp: "2026-01-01T00:00:00.000Z",
    message: { role: "user", content: "three" },
  }));
  await appendFile(path, more.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const each of [reader, store]) expect(await idsOf(each)).toEqual(["1", "3", "4"]);
  await store.append("a", [user("five", "5")]);
  expect(await idsOf(reader)).toEqual(["1", "3", "4", "5"]);
  await rested();
  // Rewritten in place, and longer, without a read in between.
  const text = (await readFile(path, "utf8")).replaceAll('"3"', '"three"').replaceAll('"5"', '"five"');
  await writeFile(path, text);
  for (const each of [reader, store]) {
    expect(await idsOf(each)).toEqual(["1", "three", "4", "five"]);
    expect((await each.head("a"))?.leafId).toBe("five");
    expect((await each.list()).items[0]?.leafId).toBe("five");
  }
  await rm(path);
  for (const each of [reader, store]) {
    expect(await each.head("a")).toBeNull();
    expect((await each.list()).items).toEqual([]);
  }
  await expect(store.append("a", [user("six")])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await writeFile(path, bytes);
  for (const each of [reader, store]) {
    expect(await idsOf(each)).toEqual(["1", "2"]);
    expect((await each.list()).items.map(({ version }) => version)).toEqual([2]);
  }
});

test("writes little more than the entries themselves", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  const before = (await stat(path)).size;
  const count = 1500;
  for (let i = 0; i < count; i++)
    await store.append("a", [
      { type: "message", message: { role: i % 2 === 0 ? "user" : "assistant", content: "x".repeat(500) } },
    ]);
  await store.close();
  const bytes = (await stat(path)).size - before + (await stat(indexOf(path))).size;
  expect(bytes / count).toBeLessThan(700);
});

test("indexes a session with many variables, and rewrites them only after enough new entries", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  for (let index = 0; index < 3000; index++)
    await store.append("a", [{ type: "variables", set: { [`key ${index}`]: "x".repeat(100) }, unset: [] }]);
  await store.close();
  const written = (await stat(indexOf(path))).size;
  expect(written).toBeGreaterThan(3000 * 100);
  expect(written).toBeLessThan((await stat(path)).size);
  // Enough for rewriting the index of any other log, and less than these variables need.
  const more = await openStore(directory);
  for (let index = 0; index < 9; index++) await more.append("a", [user(LONG)]);
  await more.close();
  expect((await stat(indexOf(path))).size - written).toBeLessThan(1000);
  const later = await openStore(directory);
  await later.append("a", [{ type: "variables", set: {}, unset: ["key 7"] }]);
  const tellSettings = async (from: SessionStore): Promise<unknown> => {
    const head = (await from.head("a")) as NonNullable<Awaited<ReturnType<typeof from.head>>>;
    return { head: { ...head, updatedAt: null }, settings: await from.settings("a", head.path) };
  };
  const told = await tellSettings(later);
  await later.close();
  await rm(indexOf(path));
  expect(await tellSettings(await openStore(directory, { readOnly: true }))).toEqual(told);
});

test("keeps every append during the first look-up by id, which reads the whole log", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory);
  for (let index = 0; index < 60; index++) await store.append("a", [user(LONG, `e${index}`)]);
  await store.close();
  const again = await openStore(directory);
  await again.append("a", [user("first")]);
  const looking = Promise.all([again.getEntry("a", "e3"), again.path("a", "e5")]);
  let done = false;
  const looked = looking.finally(() => {
    done = true;
  });
  let appended = 1;
  for (; !done && appended < 5000; appended++) await again.append("a", [user("more")]);
  expect((await looked)[0]).toMatchObject({ seq: 3 });
  expect(await again.head("a")).toMatchObject({ version: 60 + appended, path: { depth: 60 + appended } });
  await again.close();
  const bare = await openStore(directory, { readOnly: true });
  expect(await idsOf(bare)).toHaveLength(60 + appended);
  await checkHeadIsFold(bare, "a");
});
