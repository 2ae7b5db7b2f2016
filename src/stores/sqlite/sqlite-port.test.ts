import Database from "libsql";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../../testing/index.ts";
import type { SqlValue } from "../sql/sql-database.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const message: EntryDraft = { type: "message", message: { role: "user", content: "hello" } };

/** A database that records each statement that is run on it. */
function recorded(database: SqliteDatabase): { database: SqliteDatabase; ran: string[] } {
  const ran: string[] = [];
  const record = <T>(sql: string, result: T): T => {
    ran.push(sql);
    return result;
  };
  return {
    ran,
    database: {
      prepare(sql) {
        const statement = database.prepare(sql);
        return {
          run: (...values: SqlValue[]) => record(sql, statement.run(...values)),
          get: (...values: SqlValue[]) => record(sql, statement.get(...values)),
          all: (...values: SqlValue[]) => record(sql, statement.all(...values)),
        };
      },
      exec: (sql) => record(sql, database.exec(sql)),
      close: () => database.close(),
    },
  };
}

async function openTwo(): Promise<{ path: string; first: SessionStore; second: SessionStore }> {
  const directory = await mkdtemp(join(tmpdir(), "skein-sqlite-"));
  const path = join(directory, "skein.db");
  const [first, second] = [await openSqliteStore({ path }), await openSqliteStore({ path })];
  onTestFinished(async () => {
    await Promise.all([first.close(), second.close()]);
    await rm(directory, { recursive: true, force: true });
  });
  return { path, first, second };
}

test("runs one statement for an append to a cached session, and reads nothing", async () => {
  const { database, ran } = recorded(new Database(":memory:") as unknown as SqliteDatabase);
  await using store = await openSqliteStore({ path: ":memory:", database });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  ran.length = 0;
  for (let i = 1; i < 63; i++) await store.append("a", [message]);
  expect(ran).toHaveLength(62);
  expect(new Set(ran).size).toBe(1);
  // The last entry of a block also inserts the ids of the whole block, in a transaction.
  ran.length = 0;
  await store.append("a", [message]);
  expect(ran.map((sql) => sql.split(" ").slice(0, 2).join(" "))).toEqual([
    "BEGIN IMMEDIATE",
    "INSERT OR",
    "INSERT INTO",
    "COMMIT",
  ]);
});

test("runs one statement for an append under a lease", async () => {
  const { database, ran } = recorded(new Database(":memory:") as unknown as SqliteDatabase);
  await using store = await openSqliteStore({ path: ":memory:", database });
  await store.create(createHeader({ id: "a" }));
  const { token: leaseToken } = await store.lease("a", "run", 60_000);
  await store.append("a", [message], { guard: { leaseToken } });
  ran.length = 0;
  await store.append("a", [message], { guard: { leaseToken } });
  expect(ran).toHaveLength(1);
});

test("writes rows whose size does not depend on the settings, the name or the length of the log", async () => {
  const database = new Database(":memory:");
  await using store = await openSqliteStore({ path: ":memory:", database: database as unknown as SqliteDatabase });
  await store.create(createHeader({ id: "a" }));
  const big = "v".repeat(100_000);
  await store.append("a", [message, { type: "variables", set: { big }, unset: [], systemPrompt: big }]);
  await store.append("a", [{ type: "session_info", name: "n".repeat(1000) }]);
  for (let i = 0; i < 200; i++) await store.append("a", [message]);
  const [{ size }] = database.prepare("SELECT max(length(state)) AS size FROM entries WHERE seq > 2").all() as [
    { size: number },
  ];
  expect(size).toBeLessThan(150);
  await checkHeadIsFold(store, "a");
});

test("appends after entries of another connection that it has not read", async () => {
  const { first, second } = await openTwo();
  await first.create(createHeader({ id: "a" }));
  for (let i = 0; i < 100; i++) {
    const draft: EntryDraft = { ...message, id: `e-${i}` };
    const drafts: EntryDraft[] =
      i % 3 === 0 ? [draft, { type: "status", status: i % 2 ? "active" : "suspended" }] : [draft];
    const { entries } = await (i % 2 === 0 ? first : second).append("a", drafts);
    expect(entries[0]?.parentId).toBe(i === 0 ? null : `e-${i - 1}`);
  }
  await checkHeadIsFold(first, "a");
  await checkHeadIsFold(second, "a");
});

test("decides by the current head, not by the cached one", async () => {
  const { first, second } = await openTwo();
  await first.create(createHeader({ id: "a" }));
  await first.append("a", [{ ...message, id: "one" }]);
  await second.append("a", [{ ...message, id: "two" }]);
  await second.append("a", [{ type: "status", status: "suspended" }]);
  // With the head that `first` has cached, each of these would have the opposite result.
  expect((await first.append("a", [{ ...message, id: "two" }])).version).toBe(3);
  await expect(first.append("a", [message], { guard: { status: "active" } })).rejects.toMatchObject({
    code: "SESSION_SUSPENDED",
  });
  await second.append("a", [{ type: "status", status: "active" }]);
  await first.append("a", [message], { expectedVersion: 4, guard: { status: "active" } });
  await second.append("a", [{ ...message, id: "three" }]);
  await first.append("a", [{ type: "label", targetId: "three", label: "seen" }]);
  await second.append("a", [{ type: "label", targetId: "three", label: null }]);
  expect((await first.append("a", [{ ...message, id: "one" }])).version).toBe(8);
  await second.append("a", [message]);
  await expect(first.append("a", [message], { expectedVersion: 8 })).rejects.toMatchObject({
    code: "CONFLICT",
    actual: 9,
  });
});

test("checks in the INSERT itself whether the lease has expired", async () => {
  let nowMs = Date.UTC(2025, 0, 1);
  await using store = await openSqliteStore({ path: ":memory:", clock: () => new Date(nowMs) });
  await store.create(createHeader({ id: "a" }));
  const { token: leaseToken } = await store.lease("a", "run", 1000);
  for (let i = 0; i < 3; i++) await store.append("a", [message], { guard: { leaseToken } });
  nowMs += 1000;
  await expect(store.append("a", [message], { guard: { leaseToken } })).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect((await store.head("a"))?.version).toBe(3);
});

test("appends nothing to a session that another connection deleted, or purged and created again", async () => {
  const { first, second } = await openTwo();
  await first.create(createHeader({ id: "a" }));
  await first.append("a", [message, { ...message, id: "kept" }]);
  await second.delete("a");
  await expect(first.append("a", [{ ...message, id: "kept" }])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await second.undelete("a");
  await first.head("a");
  await second.delete("a");
  await expect(first.append("a", [message])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  expect(await first.head("a")).toBe(null);
  await second.undelete("a");
  expect((await first.append("a", [message])).version).toBe(3);
  await second.delete("a");
  await second.purge("2999-01-01T00:00:00.000Z");
  await second.create(createHeader({ id: "a", userId: "other" }));
  for (let i = 0; i < 3; i++) await second.append("a", [{ ...message, id: `new-${i}` }]);
  // The new session has the same version as the purged one.
  expect((await first.head("a"))?.header.userId).toBe("other");
  expect((await first.append("a", [message])).entries[0]?.parentId).toBe("new-2");
  await checkHeadIsFold(first, "a");
});

test("rolls back a failing append, and can append again", async () => {
  const database = new Database(":memory:");
  await using store = await openSqliteStore({ path: ":memory:", database: database as unknown as SqliteDatabase });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  database.exec(
    "CREATE TRIGGER fail BEFORE INSERT ON entries WHEN new.id = 'third' BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  const drafts = ["first", "second", "third"].map((id): EntryDraft => ({ ...message, id }));
  await expect(store.append("a", drafts)).rejects.toMatchObject({ code: "STORE_FAILED" });
  await expect(store.append("a", drafts.slice(2))).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect((await store.head("a"))?.version).toBe(1);
  expect(database.inTransaction).toBe(false);
  await store.append("a", drafts.slice(0, 2));
  await checkHeadIsFold(store, "a");
});

test("finds every entry by id, at every position of a block and in every segment of a chain of forks", async () => {
  await using store = await openSqliteStore({ path: ":memory:" });
  await store.create(createHeader({ id: "f0" }));
  const ids: string[] = [];
  for (let fork = 0; fork < 5; fork++) {
    for (let i = 0; i < 45; i++) {
      const { entries } = await store.append(`f${fork}`, [message, message]);
      ids.push(...entries.map(({ id }) => id));
    }
    ids.length -= 7;
    await store.fork(`f${fork}`, createHeader({ id: `f${fork + 1}` }), { at: ids.at(-1) as string });
  }
  for (const [seq, id] of ids.entries()) expect((await store.getEntry("f5", id))?.seq).toBe(seq);
  await checkHeadIsFold(store, "f5");
  // Entries that the source appended after the fork are not in the fork.
  const [hidden] = (await store.append("f4", [message])).entries;
  expect(await store.getEntry("f5", hidden?.id as string)).toBe(null);
});

test("runs one statement for one entry, and one transaction for several", async () => {
  const { database, ran } = recorded(new Database(":memory:") as unknown as SqliteDatabase);
  await using store = await openSqliteStore({ path: ":memory:", database });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  ran.length = 0;
  await store.append("a", [message]);
  expect(ran).toHaveLength(1);
  ran.length = 0;
  await store.append("a", [message, message, message]);
  expect([ran[0], ran.at(-1)]).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
  expect(ran).toHaveLength(5);
  await checkHeadIsFold(store, "a");
});

test("two stores on one file append several entries at a time, each with an outdated cache", async () => {
  const { first, second } = await openTwo();
  await first.create(createHeader({ id: "a" }));
  await second.append("a", [message]);
  for (let i = 0; i < 20; i++) {
    await first.append("a", [message, message]);
    await second.append("a", [message, message, message]);
    // One more entry takes the first of the two positions of the next append, and leaves the second free.
    if (i % 3 === 0) await second.append("a", [message]);
  }
  expect((await first.head("a"))?.version).toBe(1 + 20 * 5 + 7);
  await checkHeadIsFold(first, "a");
  await checkHeadIsFold(second, "a");
});

test("appends none of several entries under a lost lease or to a deleted session", async () => {
  const { first, second } = await openTwo();
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  const guard = { leaseToken: lease.token };
  await first.append("a", [message, message], { guard });
  await lease.release();
  await second.lease("a", "run-2", 60_000);
  await expect(first.append("a", [message, message], { guard })).rejects.toMatchObject({ code: "LEASE_LOST" });
  await first.append("a", [message, message]);
  await second.delete("a");
  await expect(first.append("a", [message, message])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await second.undelete("a");
  expect((await first.head("a"))?.version).toBe(4);
});
