import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { thisProcess } from "../../internal/process-identity.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { RunsCondition } from "../../session/log/open-runs.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import { openMemoryStore } from "../memory/index.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const time = (second: number): string => new Date(Date.UTC(2025, 0, 1) + second * 1000).toISOString();
const say = (second: number): EntryDraft => ({
  type: "message",
  timestamp: time(second),
  message: { role: "user", content: "hello" },
});

/** A memory store as the model, and two SQLite stores on one file that must give the same answers. */
async function openAll(clock: () => Date): Promise<{ model: SessionStore; stores: [SessionStore, SessionStore] }> {
  const directory = await mkdtemp(join(tmpdir(), "skein-sqlite-"));
  const path = join(directory, "skein.db");
  const stores: [SessionStore, SessionStore] = [
    await openSqliteStore({ path, clock }),
    await openSqliteStore({ path, clock }),
  ];
  onTestFinished(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await rm(directory, { recursive: true, force: true });
  });
  return { model: openMemoryStore({ clock }), stores };
}

async function pages(store: SessionStore, query: SessionQuery): Promise<unknown[]> {
  const found: unknown[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<SessionStore["list"]>> = await store.list(
      cursor === null ? query : { ...query, cursor },
    );
    found.push(page.items);
    cursor = page.next;
  } while (cursor !== null);
  return found;
}

/** An entry about one of two runs: a request, a delayed request, its start, parking, end or cancellation. */
function runDraft(number: number): EntryDraft {
  const runId = `r${number % 2}`;
  const request = { type: "run_request", id: `run:${runId}`, runId, agent: "helper", input: "hi" } as const;
  const drafts: readonly EntryDraft[] = [
    request,
    { ...request, notBefore: time(number) },
    { type: "run", runId, phase: "started" },
    { type: "run_parked", runId, questions: [{ callId: "c", question: "q" }], expiresAt: time(number) },
    { type: "run", runId, phase: "finished" },
    { type: "cancel", runId },
  ];
  return drafts[number] as EntryDraft;
}

const change = fc.record({
  session: fc.nat(5),
  type: fc.constantFrom("say", "say", "say", "run", "run", "status", "delete", "undelete", "fork", "look"),
  second: fc.nat(5),
  by: fc.nat(1),
});

test("lists, counts and expires as the memory store does, whichever connection appended and whenever one listed", async () => {
  let now = 0;
  const { model, stores } = await openAll(() => new Date(Date.UTC(2025, 0, 2) + now));
  let run = 0;
  let made = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 30 }), fc.nat(3), async (changes, limit) => {
      const userId = `user-${run++}`;
      const sessions = [0, 1, 2, 3, 4, 5].map((index) => `${userId}-${index}`);
      const onBoth = async (by: number, act: (store: SessionStore) => Promise<unknown>): Promise<void> => {
        now += 1000;
        const [expected, actual] = [
          await act(model).catch((error) => error.code),
          await act(stores[by] as SessionStore).catch((error) => error.code),
        ];
        expect(typeof actual).toEqual(typeof expected);
      };
      for (const id of sessions.slice(0, 4)) {
        const header = createHeader({ id, userId, cwd: `/${id}`, createdAt: time(3) });
        await onBoth(0, (store) => store.create(header));
      }
      for (const { session, type, second, by } of changes) {
        const id = sessions[session] as string;
        const status: EntryDraft = { type: "status", status: second % 2 ? "closed" : "suspended" };
        const drafts: EntryDraft[] = [{ ...(type === "say" ? say(second) : status), id: `e-${made++}` }];
        if (type === "say" || type === "status") await onBoth(by, (store) => store.append(id, drafts));
        if (type === "run") await onBoth(by, (store) => store.append(id, [runDraft(second)]));
        if (type === "delete") await onBoth(by, (store) => store.delete(id));
        if (type === "undelete") await onBoth(by, (store) => store.undelete(id));
        const fork = createHeader({ id: sessions[4 + (second % 2)] as string, userId, createdAt: time(second) });
        if (type === "fork") await onBoth(by, (store) => store.fork(id, fork));
        if (type === "look") await (stores[by] as SessionStore).search("hello", { userId });
      }
      const parentId = sessions[0] as string;
      for (const store of stores) {
        for (const query of [
          { userId },
          { userId, status: ["active"] },
          { userId, deleted: true },
          { parentId },
          { userId, runs: "requested" },
          { userId, runs: "interrupted", dueBefore: time(3) },
          { parentId, runs: "asking", deleted: true },
          { cwd: `/${parentId}`, runs: "asking" },
          { userId, dueBefore: time(4) },
        ] as const) {
          expect(await pages(store, { ...query, limit: limit + 1 })).toEqual(
            await pages(model, { ...query, limit: limit + 1 }),
          );
          expect(await store.count(query)).toBe(await model.count(query));
        }
        const before = new Date(Date.UTC(2025, 0, 2) + now - 3000).toISOString();
        expect(await store.listExpired(before, 1000)).toEqual(await model.listExpired(before, 1000));
      }
    }),
    { numRuns: 40 },
  );
});

test("lists the latest times when more than 200 rows are outdated, also on another connection", async () => {
  let second = 0;
  const { stores } = await openAll(() => new Date(Date.UTC(2025, 0, 2) + second * 1000));
  const [first, other] = stores;
  const ids = Array.from({ length: 600 }, (_, index) => `s${String(index).padStart(3, "0")}`);
  for (const id of ids) await first.create(createHeader({ id, createdAt: time(0) }));
  for (const id of ids) await first.append(id, [say(++second)]);
  const newest = [...ids].reverse();
  expect((await other.list({ limit: 1000 })).items.map(({ header }) => header.id)).toEqual(newest);
  // The other store has refreshed the rows; the next append must still show in its listing.
  await first.append("s000", [say(++second)]);
  expect((await other.list({ limit: 2 })).items.map(({ header, version }) => [header.id, version])).toEqual([
    ["s000", 2],
    ["s599", 1],
  ]);
  expect((await other.listExpired(time(86400 + 3), 10)).map(({ header }) => header.id)).toEqual(["s001"]);
});

test("lists a page without reading the sessions that are not on it", async () => {
  const database = new Database(":memory:");
  const options = { path: ":memory:", database: database as unknown as SqliteDatabase };
  await using maker = await openSqliteStore(options);
  const ids = Array.from({ length: 300 }, (_, index) => `s${String(index).padStart(3, "0")}`);
  for (const id of ids) await maker.create(createHeader({ id, userId: "u", cwd: "/w", createdAt: time(0) }));
  for (const [index, id] of ids.entries()) if (index % 3 === 0) await maker.append(id, [say(index)]);
  // Reading a header that is not JSON throws. The new store has an empty cache, so it must read the headers it lists.
  database.exec("UPDATE sessions SET header = 'broken' WHERE id NOT IN ('s297', 's294', 's291')");
  await using store = await openSqliteStore(options);
  expect((await store.list({ limit: 2 })).items.map(({ header }) => header.id)).toEqual(["s297", "s294"]);
  await expect(store.list({ limit: 3 })).rejects.toThrow();
  for (const filter of ["", "AND user_id = 'u'", "AND cwd = '/w'"]) {
    const plan = database
      .prepare(
        `EXPLAIN QUERY PLAN SELECT id FROM sessions WHERE deleted_at IS NULL ${filter}
         ORDER BY modified_at DESC, id DESC LIMIT 5`,
      )
      .all() as { detail: string }[];
    expect(plan.map(({ detail }) => detail).join()).not.toMatch(/TEMP B-TREE/);
  }
});

/** A database in memory that records the statements prepared on it. */
function recorded(): { database: SqliteDatabase; statements: string[] } {
  const real = new Database(":memory:");
  const statements: string[] = [];
  const prepare = (sql: string): ReturnType<SqliteDatabase["prepare"]> => {
    statements.push(sql);
    return real.prepare(sql) as unknown as ReturnType<SqliteDatabase["prepare"]>;
  };
  return { statements, database: { prepare, exec: (sql) => real.exec(sql), close: () => real.close() } };
}

test("finds open runs and due runs in partial indexes", async () => {
  const { database, statements } = recorded();
  await using store = await openSqliteStore({ path: ":memory:", database });
  const queries: readonly (readonly [SessionQuery, string])[] = [
    [{ runs: "requested" }, "sessions_requested"],
    [{ runs: "asking", status: ["active"] }, "sessions_parked"],
    [{ runs: "running" }, "sessions_started"],
    [{ runs: "interrupted", userId: "u" }, "sessions_started_by_user"],
    [{ runs: "asking", userId: "u", cwd: "/w" }, "sessions_parked_by_user"],
    [{ runs: "requested", dueBefore: time(1) }, "sessions_due"],
    [{ userId: "u", dueBefore: time(1) }, "sessions_due"],
  ];
  for (const [query, index] of queries) {
    statements.length = 0;
    await store.list(query);
    await store.count(query);
    const plans = statements
      .filter((sql) => /^SELECT .*\bsessions\b/s.test(sql))
      .map((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[])
      .map((rows) => rows.map(({ detail }) => detail).find((detail) => / sessions /.test(detail)) ?? "");
    // The query of current rows, the query of outdated rows, and the count.
    expect(plans).toHaveLength(3);
    expect(plans[0]).toMatch(new RegExp(`USING INDEX ${index}( |$)`));
    expect(plans[1]).toMatch(/USING INTEGER PRIMARY KEY \(rowid=\?\)/);
    expect(plans[2]).toMatch(new RegExp(`USING (COVERING )?INDEX ${index}( |$)`));
  }
});

test("counts a run as interrupted as soon as the process with the lease has ended", async () => {
  const database = new Database(":memory:");
  await using store = await openSqliteStore({ path: ":memory:", database: database as unknown as SqliteDatabase });
  for (const id of ["alive", "dead", "unknown"]) {
    await store.create(createHeader({ id }), { entries: [{ type: "run", runId: "r", phase: "started" }] });
    await store.lease(id, "r", 60_000);
  }
  const { pid } = spawnSync(process.execPath, ["--version"]);
  const setHolder = database.prepare(
    "UPDATE leases SET holder = ? WHERE session_key = (SELECT key FROM sessions WHERE id = ?)",
  );
  setHolder.run(JSON.stringify({ ...thisProcess, pid }), "dead");
  setHolder.run(null, "unknown");
  const found = async (runs: RunsCondition): Promise<string[]> =>
    (await store.list({ runs })).items.map(({ header }) => header.id).sort();
  expect([await found("running"), await found("interrupted")]).toEqual([["alive", "unknown"], ["dead"]]);
  expect(await store.count({ runs: "running" })).toBe(2);
  expect(await store.leaseOf("dead")).toBe(null);
});
