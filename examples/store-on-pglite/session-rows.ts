import type { PGliteInterface } from "@electric-sql/pglite";
import { SessionCapacityError, SessionError, type SessionHead, type SessionHeader } from "skein";
import {
  type Coroutine,
  type CommitConditions,
  type EncodedPlan,
  type MakeLimits,
  type NewRowSession,
  type RowPort,
  RowReader,
  type RowSession,
  runAsync,
  runsColumns,
  type Segment,
  segmentsAfter,
  type SessionCache,
  type StateRow,
  type StoredRow,
} from "skein/store";
import { type Queries, select } from "./database.ts";

/** A session as the engine knows it; the last of its segments is its own and has its key. */
export type LoadedSession = RowSession<Segment>;

/** The columns that make a session, as `sessionOf` reads them. */
export const SESSION_COLUMNS = "key, id, header, version, origin, origin_version, updated_at";

/** A row of `SESSION_COLUMNS`. */
export interface SessionRow {
  readonly key: number;
  readonly id: string;
  readonly header: string;
  readonly version: number;
  readonly origin: string;
  readonly origin_version: number;
  readonly updated_at: string;
}

/** Long logs are written in parts, as a statement with all their rows might not fit into memory. */
const BATCH_ROWS = 1000;
const NEW_ROWS = "json_to_recordset($1::text::json) AS new (seq bigint, id text, state text, body text)";

/** The port: how the row engine looks up and writes rows, in the database or in one transaction of it. */
export class SessionRows implements RowPort<Segment, LoadedSession> {
  readonly checksIds = false;
  readonly storeName = "PGlite database";
  readonly #database: PGliteInterface;
  readonly #cache: SessionCache<LoadedSession>;
  readonly #queries: Queries;

  constructor(database: PGliteInterface, cache: SessionCache<LoadedSession>, queries: Queries = database) {
    this.#database = database;
    this.#cache = cache;
    this.#queries = queries;
  }

  async load(sessionId: string, deleted = false): Promise<LoadedSession | null> {
    const where = `id = $1 AND deleted_at IS ${deleted ? "NOT NULL" : "NULL"}`;
    const sql = `SELECT ${SESSION_COLUMNS} FROM skein.sessions WHERE ${where}`;
    const [row] = await this.#select<SessionRow>(sql, [sessionId]);
    return row === undefined ? null : this.sessionOf(row);
  }

  /** The session of a row, live or deleted. The cached copy is still valid if its log has not grown. */
  async sessionOf(row: SessionRow): Promise<LoadedSession> {
    const { id, key, version } = row;
    const known = this.#cache.get(id);
    if (known?.head.version === version && keyOf(known) === key) return known;
    const header = parseFrozen(row.header) as SessionHeader;
    const segments = segmentsAfter(JSON.parse(row.origin) as Segment[], row.origin_version, key);
    const reader = new RowReader(this, this.#cache);
    const { head, leafSeq, factsSeq } = await runAsync(reader.headAt(segments, header, version));
    // A fork without appends has its own time.
    return { segments, leafSeq, factsSeq, head: Object.freeze({ ...head, updatedAt: row.updated_at }) };
  }

  async rowAt({ key }: Segment, seq: number): Promise<StateRow | undefined> {
    const sql = "SELECT seq, id, state FROM skein.entries WHERE session_key = $1 AND seq = $2";
    const [row] = await this.#select<StateRow>(sql, [key, seq]);
    return row;
  }

  findRows({ segments, head }: LoadedSession, ids: readonly string[]): Promise<readonly StoredRow[]> {
    const parts = segments.map(({ key, end }) => ({ key, end: Math.min(end, head.version) }));
    return this.#select<StoredRow>(
      `SELECT seq, id, state, body FROM json_to_recordset($1::text::json) AS part (key bigint, "end" bigint)
       JOIN skein.entries ON session_key = part.key AND seq < part."end" WHERE id = ANY ($2::text[])`,
      [JSON.stringify(parts), ids],
    );
  }

  async page({ key, start, end }: Segment, count: number, reverse: boolean): Promise<readonly string[]> {
    const rows = await this.#select<{ body: string }>(
      `SELECT body FROM skein.entries WHERE session_key = $1 AND seq >= $2 AND seq < $3
       ORDER BY seq ${reverse ? "DESC" : "ASC"} LIMIT $4`,
      [key, start, end, count],
    );
    return rows.map(({ body }) => body);
  }

  async leaseToken(session: LoadedSession): Promise<number | null> {
    const sql = "SELECT token FROM skein.leases WHERE session_key = $1 AND expires_ms > $2";
    const [row] = await this.#select<{ token: number }>(sql, [keyOf(session), Date.now()]);
    return row?.token ?? null;
  }

  /** One statement, so that it is written whole or not at all, and nothing comes between its conditions and its rows. */
  async commit(
    session: LoadedSession,
    { rows, located }: EncodedPlan,
    { leaseToken }: CommitConditions,
  ): Promise<LoadedSession | "behind"> {
    const { version, status, updatedAt, modifiedAt } = located.head;
    const { runs, due } = runsColumns(located.head);
    const written = await this.#select(
      `WITH grown AS (
         UPDATE skein.sessions
         SET version = $4, status = $5, updated_at = $6, modified_at = $7, runs = $8, runs_due = $9
         WHERE key = $2 AND version = $3 AND deleted_at IS NULL AND ($10::bigint IS NULL OR EXISTS (
           SELECT 1 FROM skein.leases WHERE session_key = key AND token = $10 AND expires_ms > $11
         )) RETURNING key
       )
       INSERT INTO skein.entries SELECT key, new.* FROM grown CROSS JOIN ${NEW_ROWS} RETURNING seq`,
      [
        ...[JSON.stringify(rows), keyOf(session), session.head.version],
        ...[version, status, updatedAt, modifiedAt, runs, due, leaseToken, Date.now()],
      ],
    );
    return written.length === 0 ? "behind" : { ...located, segments: session.segments };
  }

  /** PGlite runs one transaction at a time, so that whatever is read in it stays so until its end. */
  locked<T>(steps: (port: SessionRows) => Coroutine<T>): Promise<T> {
    return this.#database.transaction((transaction) =>
      runAsync(steps(new SessionRows(this.#database, this.#cache, transaction))),
    );
  }

  async make({ located, origin, rows }: NewRowSession<Segment>, limits: MakeLimits): Promise<LoadedSession> {
    const { header } = located.head;
    const taken = await this.#select("SELECT 1 FROM skein.sessions WHERE id = $1", [header.id]);
    if (taken.length > 0) {
      throw new SessionError("SESSION_EXISTS", `There is already a session ${header.id}; use another id.`);
    }
    await checkForks(this.#queries, header.forkedFrom?.sessionId, limits.maxForks);
    await checkOpen(this.#queries, header.userId, limits.maxOpenPerUser);
    const version = origin.at(-1)?.end ?? 0;
    const key = await this.#insertSession(located.head, origin, version);
    for (let start = 0; start < rows.length; start += BATCH_ROWS) {
      await this.#insertRows(key, rows.slice(start, start + BATCH_ROWS));
    }
    return { ...located, segments: segmentsAfter(origin, version, key) };
  }

  async #insertSession(head: SessionHead, origin: readonly Segment[], originVersion: number): Promise<number> {
    const { header, version, status, updatedAt, modifiedAt } = head;
    const { runs, due } = runsColumns(head);
    const parents = [...header.lineage.parents, ...(header.forkedFrom === null ? [] : [header.forkedFrom.sessionId])];
    const [row] = await this.#select<{ key: number }>(
      `INSERT INTO skein.sessions (id, header, version, origin, origin_key, origin_version, user_id, cwd, parents,
         status, updated_at, modified_at, runs, runs_due)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING key`,
      [
        ...[header.id, JSON.stringify(header), version, JSON.stringify(origin), origin.at(-1)?.key ?? null],
        ...[originVersion, header.userId, header.cwd, parents, status, updatedAt, modifiedAt, runs, due],
      ],
    );
    return (row as { key: number }).key;
  }

  async #insertRows(key: number, rows: readonly StoredRow[]): Promise<void> {
    const sql = `INSERT INTO skein.entries SELECT $2::bigint, new.* FROM ${NEW_ROWS}`;
    await this.#select(sql, [JSON.stringify(rows), key]);
  }

  #select<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    return select<Row>(this.#queries, sql, values);
  }
}

/** @throws {SessionCapacityError} when a user already has that many open sessions. Called in a transaction. */
export async function checkOpen(queries: Queries, userId: string | null, limit: number | undefined): Promise<void> {
  if (userId === null || limit === undefined) return;
  const open = await select(
    queries,
    `SELECT 1 FROM skein.sessions WHERE user_id = $1 AND deleted_at IS NULL AND status IN ('active', 'suspended')
     LIMIT $2`,
    [userId, limit],
  );
  if (open.length >= limit) throw new SessionCapacityError("open sessions of a user", limit);
}

async function checkForks(queries: Queries, sourceId: string | undefined, limit: number | undefined): Promise<void> {
  if (sourceId === undefined || limit === undefined) return;
  const forks = await select(
    queries,
    `SELECT 1 FROM skein.sessions WHERE parents @> ARRAY[$1] AND deleted_at IS NULL
       AND header::json #>> '{forkedFrom,sessionId}' = $1 LIMIT $2`,
    [sourceId, limit],
  );
  if (forks.length >= limit) throw new SessionCapacityError("forks of a session", limit);
}

function keyOf({ segments }: LoadedSession): number {
  return (segments.at(-1) as Segment).key;
}

/** Frozen, because the cached value is returned many times. */
function parseFrozen(json: string): unknown {
  return JSON.parse(json, (_, value: unknown) => Object.freeze(value));
}
