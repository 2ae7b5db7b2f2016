import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { postgresUrl } from "../../../test/postgres-server.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../../testing/index.ts";
import { openPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";

const message = { type: "message", message: { role: "user", content: "hello" } } as const;

interface Counted {
  readonly store: SessionStore;
  readonly sql: postgres.Sql;
  readonly schema: string;
  /** The statements that `work` sends. */
  during(work: () => Promise<unknown>): Promise<string[]>;
  /** How many rows of `sessions` the statements of `work` read. */
  sessionsReadBy(work: () => Promise<unknown>): Promise<number>;
}

/** A node of a query plan, from `EXPLAIN`. */
interface Plan {
  readonly Plans?: readonly Plan[];
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
}

function sessionsIn(plan: Plan): number {
  const rows = (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"];
  const own = plan["Relation Name"] === "sessions" ? rows : 0;
  return (plan.Plans ?? []).reduce((sum, part) => sum + sessionsIn(part), own);
}

/** A store whose statements are counted. */
async function openCounted(options: Pick<PostgresStoreOptions, "clock"> = {}): Promise<Counted> {
  const statements: string[] = [];
  const bound: unknown[][] = [];
  const debug = (_: number, query: string, values: unknown[]): void => {
    statements.push(query);
    bound.push(values);
  };
  const sql = postgres(await postgresUrl(), { max: 1, onnotice: () => {}, debug, fetch_types: false });
  const schema = `skein_${randomUUID().slice(0, 8)}`;
  const store = await openPostgresStore({ sql, schema, ...options });
  onTestFinished(async () => {
    await store.close();
    await sql.end();
  });
  const during = async (work: () => Promise<unknown>): Promise<string[]> => {
    statements.length = 0;
    bound.length = 0;
    await work();
    return [...statements];
  };
  const sessionsReadBy = async (work: () => Promise<unknown>): Promise<number> => {
    const ran = await during(work);
    const values = [...bound];
    let rows = 0;
    for (const [index, statement] of ran.entries()) {
      const [told] = await sql.unsafe<[{ "QUERY PLAN": [{ Plan: Plan }] }]>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`,
        values[index] as never[],
      );
      rows += sessionsIn(told["QUERY PLAN"][0].Plan);
    }
    return rows;
  };
  return { store, sql, schema, during, sessionsReadBy };
}

test("appends with one statement: a new entry, one with an id, several, a fact, one under a lease and settings", async () => {
  const { store, during } = await openCounted();
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  const { token } = await store.lease("a", "run", 60_000);
  const { leafId } = (await store.head("a")) as { leafId: string };
  for (const work of [
    () => store.append("a", [message]),
    () => store.append("a", [{ ...message, id: "given" }]),
    () => store.append("a", [message, { ...message, id: "other" }, message]),
    () => store.append("a", [{ type: "run", runId: "r", phase: "started" }]),
    () => store.append("a", [message], { guard: { leaseToken: token, status: "active" }, expectedVersion: 7 }),
    () => store.append("a", [{ type: "variables", set: { x: 1 }, unset: [] }]),
  ]) {
    expect(await during(work)).toHaveLength(1);
  }
  expect(leafId).not.toBeNull();
  await checkHeadIsFold(store, "a");
});

test("stores the complete head with every kind of entry, for a process without a cache", async () => {
  const { store, sql, schema } = await openCounted();
  await store.create(createHeader({ id: "a" }));
  const kinds: readonly EntryDraft[][] = [
    [{ ...message, id: "one" }],
    [{ type: "variables", set: { x: "1" }, unset: [], systemPrompt: "be brief" }],
    [{ ...message, id: "two" }],
    [{ type: "run", runId: "r", phase: "started" }],
    [
      { ...message, id: "three" },
      { type: "session_info", name: "a name" },
    ],
    [{ type: "leaf", targetId: "one" }],
    [{ type: "label", targetId: "two", label: "here" }],
    [{ type: "variables", set: { y: "2" }, unset: [] }],
    [{ type: "leaf", targetId: "three" }, message],
    [{ type: "status", status: "suspended", reason: "rest" }],
    [{ type: "leaf", targetId: null }],
    [{ type: "run", runId: "r", phase: "finished" }, message, { type: "model_change", provider: "p", modelId: "m" }],
  ];
  for (const drafts of [...kinds, ...kinds.map((each) => each.map(({ id: _, ...draft }) => draft as EntryDraft))]) {
    const { head } = await store.append("a", drafts);
    const other = await openPostgresStore({ sql, schema });
    expect(await other.head("a")).toEqual(head);
    await checkHeadIsFold(other, "a");
    await other.append("a", [message]);
    await store.head("a");
  }
  await checkHeadIsFold(store, "a");
});

test("appends nothing to a session that another store deleted, even if the cached head is current", async () => {
  const { store, sql, schema } = await openCounted();
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  await store.append("a", [message]);
  const other = await openPostgresStore({ sql, schema });
  expect(await other.delete("a")).toBe(true);
  await expect(store.append("a", [message])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  expect(await other.undelete("a")).toBe(true);
  expect((await store.append("a", [message])).version).toBe(3);
  expect((await other.list()).items.map(({ version }) => version)).toEqual([3]);
});

test("appends to a long session with as many statements and bytes as to a short one", async () => {
  const { store, sql, schema, during } = await openCounted();
  const entries = Array.from({ length: 3000 }, () => message);
  await store.create(createHeader({ id: "long" }), { entries });
  await store.create(createHeader({ id: "short" }));
  const bytesOf = async (id: string): Promise<number> => {
    const [row] = await sql.unsafe(
      `SELECT pg_column_size(heads.*)::int AS bytes FROM ${schema}.heads WHERE session_id = '${id}'`,
    );
    return Number(row?.bytes);
  };
  for (const id of ["long", "short"]) {
    await store.append(id, [message]);
    expect(await during(() => store.append(id, [message]))).toHaveLength(1);
  }
  expect((await bytesOf("long")) - (await bytesOf("short"))).toBeLessThan(40);
});

test("updates a head in place (HOT), whatever indexes list the session", async () => {
  const { store, sql, schema } = await openCounted();
  await store.create(createHeader({ id: "a", userId: "u", cwd: "/w" }));
  for (let i = 0; i < 50; i++) await store.append("a", [message]);
  await sql.unsafe("SELECT pg_stat_force_next_flush()");
  const [row] = await sql.unsafe(
    `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables
     WHERE schemaname = '${schema}' AND relname = 'heads'`,
  );
  expect(row?.all).toBeGreaterThanOrEqual(50);
  expect(row?.hot).toBeGreaterThan(Number(row?.all) - 5);
});

test("lists correctly when many sessions have changed since the last listing, and refreshes their rows", async () => {
  let nowMs = Date.parse("2030-01-01T00:00:00.000Z");
  // Each append gets a different millisecond: equal times would be listed in the order of ids.
  const { store, sql, schema } = await openCounted({ clock: () => new Date(nowMs++) });
  const ids = Array.from({ length: 300 }, (_, i) => `s${i}`);
  for (const id of ids) await store.create(createHeader({ id, userId: "u" }));
  for (const [i, id] of ids.entries()) {
    await store.append(id, [{ ...message, timestamp: new Date(2030, 0, 1, 0, i).toISOString() }]);
  }
  const listed = async (): Promise<string[]> =>
    (await store.list({ userId: "u", limit: 1000 })).items.map((head) => head.header.id);
  const count = async (): Promise<number> => {
    const [row] = await sql.unsafe(`SELECT count(*)::int AS count FROM ${schema}.sessions WHERE unsettled`);
    return Number(row?.count);
  };
  expect(await count()).toBe(300);
  // The listing of one user does not refresh the rows of others, whose next append would become slower.
  await store.create(createHeader({ id: "v", userId: "v" }));
  await store.list({ userId: "v" });
  expect(await count()).toBe(300);
  expect(await listed()).toEqual([...ids].reverse());
  expect(await count()).toBe(0);
  await store.append("s0", [{ ...message, timestamp: "2031-01-01T00:00:00.000Z" }]);
  expect(await count()).toBe(1);
  expect(await listed()).toEqual(["s0", ...ids.slice(1).reverse()]);
  const expired = await store.listExpired("9999-01-01T00:00:00.000Z", 1000);
  expect(expired.map((head) => head.header.id)).toEqual([...ids.slice(1), "v", "s0"]);
});

test("lists and counts with an index, without a sequential scan", async () => {
  const { store, sql, schema, during } = await openCounted();
  await store.create(createHeader({ id: "source", userId: "u" }));
  await sql.unsafe(
    `INSERT INTO ${schema}.sessions (id, user_id, cwd, status, listed_at, idle_at, origin_version, segments, searched, header)
     SELECT 'n' || i, 'u' || i % 500, '/w' || i % 500, 'active', '2030-01-01T00:00:00.' || i, '2030', 0, '[]', 0, '{}'
     FROM generate_series(1, 20000) AS i`,
  );
  await sql.unsafe(`INSERT INTO ${schema}.heads (session_key, session_id, version, updated_at, modified_at)
    SELECT key, id, 0, idle_at, listed_at FROM ${schema}.sessions WHERE id <> 'source'`);
  await sql.unsafe(`ANALYZE ${schema}.sessions`);
  await sql.unsafe(`ANALYZE ${schema}.heads`);
  for (const work of [
    () => store.list({ userId: "u7", limit: 5 }),
    () => store.list({ cwd: "/w7", limit: 5 }),
    () => store.list({ limit: 5 }),
    () => store.count({ userId: "u7" }),
    () => store.listExpired("2029-01-01T00:00:00.000Z", 10),
  ]) {
    const [statement = ""] = await during(work);
    const bound = statement.replace(/\$\d+/g, (parameter) =>
      /LIMIT$/.test(statement.slice(0, statement.indexOf(parameter)).trim()) ? "11" : "'u7'",
    );
    const plan = await sql.unsafe(`EXPLAIN ${bound}`);
    const lines = plan.map((row) => String(row["QUERY PLAN"]));
    expect(lines.filter((line) => /Seq Scan on (?:sessions|heads|entries)/.test(line))).toEqual([]);
  }
});

test("reads only the sessions that match a query by open runs or due time", async () => {
  const { store, sql, schema, sessionsReadBy } = await openCounted();
  await sql.unsafe(
    `INSERT INTO ${schema}.sessions (id, user_id, status, listed_at, idle_at, origin_version, segments, searched, header,
       runs, runs_due)
     SELECT 'n' || i, 'u' || i % 3, 'active', '2030-01-01T00:00:00.' || i, '2030', 0, '[]', 0, '{}',
       CASE WHEN i % 2 = 0 THEN 4 END, CASE WHEN i % 2 = 0 THEN '2040-01-01T00:00:00.000Z' END
     FROM generate_series(1, 20000) AS i`,
  );
  await sql.unsafe(`INSERT INTO ${schema}.heads (session_key, session_id, version, updated_at, modified_at)
    SELECT key, id, 0, idle_at, listed_at FROM ${schema}.sessions`);
  const request = { type: "run_request", id: "run:r", runId: "r", agent: "helper", input: "hi" } as const;
  for (const [id, entry] of [
    ["asked", request],
    ["ran", { type: "run", runId: "r", phase: "started" }],
    ["runs", { type: "run", runId: "r", phase: "started" }],
  ] as const)
    await store.create(createHeader({ id, userId: "u1" }), { entries: [entry] });
  await store.lease("runs", "r", 60_000);
  const queries = [
    [{ runs: "requested" }, "asked"],
    [{ runs: "requested", userId: "u1" }, "asked"],
    [{ runs: "requested", status: ["active", "suspended"] }, "asked"],
    [{ runs: "running" }, "runs"],
    [{ runs: "interrupted", userId: "u1" }, "ran"],
    [{ dueBefore: "2035-01-01T00:00:00.000Z" }, "asked"],
    [{ dueBefore: "2035-01-01T00:00:00.000Z", userId: "u1" }, "asked"],
  ] as const;
  for (const table of ["sessions", "heads"]) await sql.unsafe(`ANALYZE ${schema}.${table}`);
  for (const [query, found] of queries) {
    expect((await store.list(query)).items.map(({ header }) => header.id)).toEqual([found]);
    expect(await sessionsReadBy(() => store.list(query))).toBeLessThan(10);
    expect(await sessionsReadBy(() => store.count(query))).toBeLessThan(10);
  }
  expect(await sessionsReadBy(() => store.list({ runs: "asking", limit: 5 }))).toBeLessThan(50);
  expect(await sessionsReadBy(() => store.list({ runs: "asking", userId: "u2", limit: 5 }))).toBeLessThan(50);
});

/** SQL that selects the statements on a schema that wait for a lock. */
function waitingIn(schema: string): string {
  return `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND datname = current_database() AND query LIKE '%${schema}%'`;
}

test("locks the row in `sessions` before the row in `heads`, so that it cannot deadlock", async () => {
  const { store, schema } = await openCounted();
  const other = postgres(await postgresUrl(), { max: 2, onnotice: () => {} });
  onTestFinished(() => other.end());
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  let starting: Promise<unknown> = Promise.resolve();
  await other.begin(async (holder) => {
    // Locks in the same order as refreshing and deleting: first `sessions`, then `heads`.
    const [row] = await holder.unsafe(`SELECT key FROM ${schema}.sessions WHERE id = 'a' FOR NO KEY UPDATE`);
    starting = store.append("a", [{ type: "run", runId: "r", phase: "started" }]);
    await expect.poll(() => other.unsafe(waitingIn(schema))).toHaveLength(1);
    await holder.unsafe(`UPDATE ${schema}.heads SET watched_until_ms = 0 WHERE session_key = ${row?.key}`);
  });
  await starting;
  expect((await store.list({ runs: "interrupted" })).items).toHaveLength(1);
  const [counted] = await other`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`;
  expect(Number(counted?.deadlocks)).toBe(0);
});

test("saves no checkpoint of a session that is purged at the same time", async () => {
  const { store, schema } = await openCounted();
  const other = postgres(await postgresUrl(), { max: 2, onnotice: () => {} });
  onTestFinished(() => other.end());
  await store.create(createHeader({ id: "a" }));
  const position = { version: 0, leafId: null, parentCheckpointId: null };
  const checkpoint = { id: "c", sessionId: "a", ...position, createdAt: "2025-01-01T00:00:00.000Z", metadata: {} };
  let saving: Promise<unknown> = Promise.resolve();
  await other.begin(async (holder) => {
    await holder.unsafe(`DELETE FROM ${schema}.heads; DELETE FROM ${schema}.sessions WHERE id = 'a'`);
    saving = store.saveCheckpoint(checkpoint).catch((error) => error);
    await expect.poll(() => other.unsafe(waitingIn(schema))).toHaveLength(1);
  });
  expect(await saving).toMatchObject({ code: "SESSION_NOT_FOUND" });
});

test("indexes only new entries, and finds what a fork inherited from a purged source", async () => {
  const { store, sql, schema } = await openCounted();
  const said = (content: string) => ({ type: "message", message: { role: "user", content } }) as const;
  const entries = Array.from({ length: 200 }, (_, i) => said(`entry number ${i}`));
  await store.create(createHeader({ id: "source" }), { entries: [...entries, said("a needle in it")] });
  await store.fork("source", createHeader({ id: "fork" }));
  await store.delete("source");
  await store.purge("9999-01-01T00:00:00.000Z");
  expect((await store.search("needle")).map(({ head }) => head.header.id)).toEqual(["fork"]);
  const blocks = async (): Promise<number> => {
    const [row] = await sql.unsafe(`SELECT count(*)::int AS count FROM ${schema}.search_index WHERE block >= 0`);
    return Number(row?.count);
  };
  expect(await blocks()).toBe(4);
  // More than once, as the first append after a search has to mark the session.
  for (const word of ["first pin", "second pin", "third pin", "fourth pin"]) {
    await store.append("fork", [said(word)]);
    expect((await store.search(word)).map(({ head }) => head.header.id)).toEqual(["fork"]);
  }
  expect(await blocks()).toBe(5);
});
