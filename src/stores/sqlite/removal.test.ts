import Database from "libsql";
import { expect, onTestFinished, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../../testing/index.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const LATER = "2999-01-01T00:00:00.000Z";
const say = (text: string): EntryDraft => ({ type: "message", message: { role: "user", content: text } });

async function open(): Promise<{ store: SessionStore; count: (table: string) => number }> {
  const database = new Database(":memory:");
  const store = await openSqliteStore({ path: ":memory:", database: database as unknown as SqliteDatabase });
  onTestFinished(async () => {
    await store.close();
    database.close();
  });
  const count = (table: string): number =>
    (database.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }).count;
  return { store, count };
}

/** A session with 150 entries, a fork of it after the first 100 with 100 more, and a fork of that after 150. */
async function makeChain(store: SessionStore): Promise<void> {
  await store.create(createHeader({ id: "a", userId: "u", cwd: "/w" }));
  const entries = (
    await store.append(
      "a",
      Array.from({ length: 150 }, (_, i) => say(`a ${i}`)),
    )
  ).entries;
  await store.fork("a", createHeader({ id: "b" }), { at: entries[99]?.id as string });
  const more = (
    await store.append(
      "b",
      Array.from({ length: 100 }, (_, i) => say(`b ${i}`)),
    )
  ).entries;
  await store.fork("b", createHeader({ id: "c" }), { at: more[49]?.id as string });
  await store.append("c", [say("c 0")]);
}

test("purges every row of a session without forks", async () => {
  const { store, count } = await open();
  await store.create(
    createHeader({ id: "a", lineage: { parents: ["p"], operator: "o", kind: "unknown", extras: [] } }),
  );
  await store.append(
    "a",
    Array.from({ length: 200 }, (_, i) => say(`a ${i}`)),
  );
  await store.lease("a", "run", 60_000);
  await store.saveCheckpoint({
    id: "c",
    sessionId: "a",
    version: 1,
    leafId: null,
    createdAt: new Date().toISOString(),
    parentCheckpointId: null,
    metadata: {},
  });
  expect(await store.search('"a 1"')).toHaveLength(1);
  await store.delete("a");
  expect(await store.purge("2000-01-01T00:00:00.000Z")).toBe(0);
  expect(count("entries")).toBe(200);
  expect(await store.purge(LATER)).toBe(1);
  const tables = ["entries", "entry_ids", "sessions", "session_parents", "checkpoints", "leases", "unsettled"];
  for (const table of [...tables, "search_index_docsize"]) expect([table, count(table)]).toEqual([table, 0]);
  await store.create(createHeader({ id: "a" }));
  expect((await store.head("a"))?.version).toBe(0);
});

test("keeps the entries of a purged session that its forks inherited, and deletes them with the last fork", async () => {
  const { store, count } = await open();
  await makeChain(store);
  expect(await store.search("99")).toHaveLength(3);
  await store.delete("a");
  await store.delete("b");
  expect(await store.purge(LATER)).toBe(2);
  expect(count("entries")).toBe(100 + 50 + 1);
  expect(count("entry_ids")).toBeLessThanOrEqual(100 + 50 + 1);
  await checkHeadIsFold(store, "c");
  expect((await store.head("c"))?.version).toBe(151);
  expect((await store.search('"a 42"')).map(({ head }) => head.header.id)).toEqual(["c"]);
  expect(await store.purge(LATER)).toBe(0);
  await store.delete("c");
  expect(await store.purge(LATER)).toBe(1);
  expect([count("entries"), count("entry_ids"), count("sessions"), count("search_index_docsize")]).toEqual([
    0, 0, 0, 0,
  ]);
});

test("keeps the entries that a deleted fork needs if it is undeleted", async () => {
  const { store, count } = await open();
  await makeChain(store);
  await store.delete("c");
  await store.delete("a");
  const between = new Date(Date.now() + 5).toISOString();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await store.undelete("c");
  await store.delete("c");
  expect(await store.purge(between)).toBe(1);
  expect(count("entries")).toBe(100 + 100 + 1);
  await store.undelete("c");
  await checkHeadIsFold(store, "c");
  await checkHeadIsFold(store, "b");
  // The source of the first segment is purged, so its id is free; the new session must not mix with the old entries.
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [say("new")]);
  await checkHeadIsFold(store, "a");
  await checkHeadIsFold(store, "c");
});

test("does not purge a session that is undeleted after it was selected", async () => {
  const database = new Database(":memory:");
  const prepare = (sql: string): ReturnType<SqliteDatabase["prepare"]> => {
    const statement = database.prepare(sql) as unknown as ReturnType<SqliteDatabase["prepare"]>;
    if (!sql.startsWith("SELECT id FROM sessions WHERE deleted_at <")) return statement;
    // Another process undeletes the session after the sessions to purge were selected.
    return {
      run: (...values) => statement.run(...values),
      get: (...values) => statement.get(...values),
      all: (...values) => {
        const selected = statement.all(...values);
        database.exec("UPDATE sessions SET deleted_at = NULL WHERE id = 'a'");
        return selected;
      },
    };
  };
  const exec = (sql: string): unknown => database.exec(sql);
  await using store = await openSqliteStore({ path: ":memory:", database: { prepare, exec, close: () => {} } });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [say("still here")]);
  await store.delete("a");
  expect(await store.purge(LATER)).toBe(0);
  await checkHeadIsFold(store, "a");
});
