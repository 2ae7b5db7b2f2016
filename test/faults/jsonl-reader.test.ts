import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { Checkpoint } from "../../src/session/store.ts";
import { makeDirectory, makeSession, openStore, snapshot, user } from "./jsonl-support.ts";
import { entriesOf } from "./store-support.ts";

const POINT: Checkpoint = {
  id: "c",
  sessionId: "a",
  version: 1,
  leafId: "1",
  createdAt: "2026-01-01T00:00:00.000Z",
  parentCheckpointId: null,
  metadata: {},
};

test.each<{ readOnly?: boolean; salvage?: boolean }>([{}, { readOnly: true }, { salvage: true }])(
  "a reader writes nothing (%o)",
  async (options) => {
    const directory = await makeDirectory();
    const { store } = await makeSession(directory, [user("one", "1"), user("two", "2")]);
    await store.create(createHeader({ id: "gone" }));
    await store.delete("gone");
    await store.saveCheckpoint(POINT);
    await store.close();
    await writeFile(join(directory, "broken.jsonl"), '{"type":"session","version":1,"id":"broken"\n');
    await writeFile(join(directory, "notes.txt"), "not a session");
    const before = await snapshot(directory);
    const reader = await openStore(directory, options);
    await reader.ping();
    expect((await reader.list()).items.length).toBe(options.salvage === true ? 2 : 1);
    expect((await reader.list({ deleted: true })).items.length).toBe(1);
    await reader.count();
    await reader.search("one");
    await reader.aggregate({ groupBy: ["day"] });
    await reader.listExpired("2100-01-01T00:00:00.000Z", 10);
    expect((await entriesOf(reader)).length).toBe(2);
    await entriesOf(reader, "a", { reverse: true, limit: 1 });
    await reader.getEntry("a", "1");
    await reader.getEntry("a", "nowhere");
    await reader.path("a", "1");
    await reader.head("nowhere");
    expect(await reader.loadCheckpoint("c")).toEqual(POINT);
    await reader.listCheckpoints("a");
    await reader.leaseOf("a");
    await reader.openFile(join(directory, "broken.jsonl")).catch(() => {});
    await reader.damageOf("a");
    await reader.pathOf("a");
    await reader.close();
    expect(await snapshot(directory)).toEqual(before);
  },
);

test("a read-only store refuses every write and makes nothing", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory, [user("one", "1")]);
  await store.close();
  const before = await snapshot(directory);
  const reader = await openStore(directory, { readOnly: true });
  const header = createHeader();
  for (const write of [
    () => reader.create(header),
    () => reader.append("a", [user("two")]),
    () => reader.append("a", [user("one", "1")]),
    () => reader.fork("a", header),
    () => reader.delete("a"),
    () => reader.undelete("a"),
    () => reader.purge("2100-01-01T00:00:00.000Z"),
    () => reader.saveCheckpoint(POINT),
    () => reader.deleteCheckpoint("c"),
    () => reader.lease("a", "run", 1000),
  ]) {
    await expect(write()).rejects.toMatchObject({ code: "READ_ONLY" });
  }
  expect(await snapshot(directory)).toEqual(before);
  const nowhere = await openStore(join(directory, "nowhere"), { readOnly: true });
  expect((await nowhere.list()).items).toEqual([]);
  expect(await nowhere.head("a")).toBeNull();
  await expect(nowhere.ping()).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(await readdir(directory)).not.toContain("nowhere");
});

test("a closed store refuses what only a store of files has, as it does every other call", async () => {
  const { store } = await makeSession(await makeDirectory(), [user("one", "1")]);
  const path = (await store.pathOf("a")) as string;
  await store.close();
  const calls = [store.pathOf("a"), store.openFile(path), store.damageOf("a"), store.setPartial("a", true)];
  for (const call of calls) await expect(call).rejects.toMatchObject({ code: "STORE_CLOSED" });
  await expect(store.createFile(path, createHeader({ id: "b" }), [])).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test("a store that nothing is written to makes no directory", async () => {
  const directory = await makeDirectory();
  const store = await openStore(join(directory, "later"));
  await store.ping();
  expect((await store.list()).items).toEqual([]);
  await store.close();
  expect(await readdir(directory)).toEqual([]);
  await mkdir(join(directory, "later"));
});

test("makes a session whole or not at all, and leaves nothing half made behind", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory, [user("one", "1")]);
  await expect(store.create(createHeader({ id: "a" }))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  await expect(store.fork("a", createHeader({ id: "b" }), { at: "nowhere" })).rejects.toMatchObject({
    code: "UNKNOWN_ENTRY",
  });
  await store.delete("a");
  await expect(store.create(createHeader({ id: "a" }))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  await store.close();
  expect(await readdir(directory)).toEqual(expect.not.arrayContaining([expect.stringContaining("tmp")]));
  expect(await readdir(join(directory, ".index"))).toEqual([]);
  // The remains of a killed process are removed with the next session.
  const ago = new Date(Date.now() - 3_600_000);
  for (const [name, time] of [
    ["old.tmp", ago],
    ["new.tmp", new Date()],
  ] as const) {
    await writeFile(join(directory, ".index", name), "half");
    await utimes(join(directory, ".index", name), time, time);
  }
  const again = await openStore(directory);
  await again.create(createHeader());
  await again.close();
  expect(await readdir(join(directory, ".index"))).toEqual(["new.tmp"]);
});

test("two processes that create sessions of one user concurrently stay below the limit", async () => {
  const directory = await makeDirectory();
  const stores = await Promise.all([openStore(directory), openStore(directory)]);
  const made = await Promise.allSettled(
    Array.from({ length: 10 }, (_, i) => stores[i % 2]?.create(createHeader({ userId: "bob" }), { maxOpenPerUser: 3 })),
  );
  expect(made.filter(({ status }) => status === "fulfilled").length).toBe(3);
  const same = await Promise.allSettled(
    stores.map((store) =>
      store.create(createHeader({ id: "same", createdAt: new Date(Math.random() * 1e12).toISOString() })),
    ),
  );
  expect(same.filter(({ status }) => status === "fulfilled").length).toBe(1);
});
