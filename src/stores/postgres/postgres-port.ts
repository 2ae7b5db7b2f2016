import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { parentsOf } from "../../session/query.ts";
import { type Coroutine, runAsync } from "../rows/coroutine.ts";
import type { EncodedPlan } from "../rows/row-encoding.ts";
import { sessionExists } from "../complete/session-exists.ts";
import { sessionLimitsOf, type MakeLimits } from "../complete/session-limits.ts";
import type { CommitConditions, NewRowSession, StateRow, StoredRow } from "../rows/row-port.ts";
import { RowReader } from "../rows/row-reader.ts";
import { runsColumns, sameRuns } from "../rows/runs-columns.ts";
import { clipSegments, type Segment, segmentsAfter } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkSqlLimits } from "../sql/sql-limits.ts";
import type { SqlPort } from "../sql/sql-port.ts";
import { fromJsonb, jsonOf, toJsonb } from "./jsonb-text.ts";
import type { LeaseColumns } from "./lease-columns.ts";
import { isRetryable } from "./postgres-failure.ts";
import { DATABASE_NOW_MS, type PostgresHandle, type Transaction } from "./postgres-handle.ts";
import {
  encodeSegments,
  IS_LIVE,
  type LoadedSession,
  SESSION_COLUMNS,
  type SessionRow,
  segmentsOf,
  sessionsIn,
} from "./session-row.ts";
import { notifyIfWatched } from "./subscriptions.ts";

/** The largest batch of rows that one statement writes. */
const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

/**
 * The most stored bytes in a page. The length of a body as text is known only after reading it. Compression can store a very
 * regular text in a ninetieth of its length, so a page can still have 11 MiB of text.
 */
const STORED_BYTES = 128 * 1024;

/** The parts of the store that a port uses. */
export interface PortParts {
  readonly handle: PostgresHandle;
  readonly cache: SessionCache<LoadedSession>;
  readonly leases: LeaseColumns;
}

/** A batch of rows to read with one statement, and the promise of those found, by key and position. */
interface RowBatch {
  readonly keys: { readonly key: number; readonly seq: number }[];
  readonly rows: Promise<ReadonlyMap<string, StateRow>>;
}

/**
 * The rows of a PostgreSQL database, or of one transaction. Outside a transaction, an append is one statement that writes
 * only if the session is still at the planned version. In a transaction, `load` locks the session until it ends.
 */
export class PostgresPort implements SqlPort<LoadedSession> {
  readonly checksIds = true;
  readonly storeName: string;
  readonly runner: Transaction;
  readonly #parts: PortParts;
  readonly #handle: PostgresHandle;
  readonly #transaction: Transaction | null;
  #batch: RowBatch | null = null;

  constructor(parts: PortParts, transaction: Transaction | null = null) {
    this.#parts = parts;
    this.#handle = parts.handle;
    this.storeName = `PostgreSQL database ${parts.handle.address}`;
    this.#transaction = transaction;
    this.runner = transaction ?? parts.handle;
  }

  async load(sessionId: string, deleted = false): Promise<LoadedSession | null> {
    // The lock makes a purge wait until a fork is committed, and an append until the one before is.
    const lock = this.#transaction === null ? "" : "FOR NO KEY UPDATE";
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(this.#handle.schema)} WHERE id = $1 AND (${IS_LIVE}) <> ${deleted} ${lock}`;
    const [row] = await this.runner.rows<SessionRow>(sql, [sessionId]);
    return row === undefined ? null : await this.sessionOf(row);
  }

  /** The current heads of sessions, in the order of the given ids; null for sessions that do not exist or are deleted. */
  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const from = sessionsIn(this.#handle.schema);
    const wanted = "id = ANY (ARRAY (SELECT json_array_elements_text($1::text::json)))";
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${from} WHERE ${wanted} AND ${IS_LIVE}`;
    const rows = await this.runner.rows<SessionRow>(sql, [JSON.stringify(sessionIds)]);
    const sessions = new Map(await Promise.all(rows.map(async (row) => [row.id, await this.sessionOf(row)] as const)));
    return sessionIds.map((id) => sessions.get(id)?.head ?? null);
  }

  /** Loads the session of a row; null if it has been purged since. */
  async sessionOf(row: SessionRow): Promise<LoadedSession | null> {
    const { cache } = this.#parts;
    const [key, version, { marked }] = [Number(row.key), Number(row.version), row];
    const cached = cache.get(row.id);
    const known = cached?.key === key ? cached : undefined;
    if (known?.head.version === version) return known.marked === marked ? known : { ...known, marked };
    const header = known?.head.header ?? freezeDeep(fromJsonb(row.header) as SessionHeader);
    const segments = known?.segments ?? segmentsOf(row);
    const found = await runAsync(new RowReader(this, cache).headAt(segments, header, version)).catch(async (error) => {
      // In a transaction, the session is locked and cannot have been purged, and a lost connection must not be used again.
      if (this.#transaction !== null) throw error;
      const sql = `SELECT 1 AS found FROM ${this.#handle.schema}.sessions WHERE key = $1 AND id IS NOT NULL`;
      if ((await this.#handle.rows(sql, [key])).length > 0) throw error;
    });
    if (found === undefined) return null;
    const { head, leafSeq, factsSeq } = found;
    // The row of a fork without appends has times that differ from those of its last, inherited entry.
    const times = { updatedAt: row.updated_at, modifiedAt: row.modified_at };
    const session = { key, segments, marked, head: Object.freeze({ ...head, ...times }), leafSeq, factsSeq };
    cache.remember(session);
    return session;
  }

  /** Calls within the same tick, such as those for the heads of a listing, are batched into one statement. */
  rowAt({ key }: Segment, seq: number): Promise<StateRow | undefined> {
    this.#batch ??= { keys: [], rows: Promise.resolve().then(() => this.#readBatch()) };
    const { keys, rows } = this.#batch;
    keys.push({ key, seq });
    return rows.then((found) => found.get(`${key} ${seq}`));
  }

  async findRows({ segments, head }: LoadedSession, ids: readonly string[]): Promise<readonly StoredRow[]> {
    // One index look-up per id and segment; with a join, the planner might read the whole log instead.
    const rows = await this.runner.rows<StoredRow>(
      `SELECT found.* FROM json_to_recordset($1::text::json) AS part (key bigint, "end" bigint)
       CROSS JOIN json_array_elements_text($2::text::json) AS wanted (id)
       CROSS JOIN LATERAL (
         SELECT seq, id, state, body::text AS body FROM ${this.#handle.schema}.entries
         WHERE session_key = part.key AND entries.id = wanted.id AND seq < part."end" LIMIT 1
       ) AS found`,
      [JSON.stringify(clipSegments(segments, 0, head.version)), JSON.stringify(ids)],
    );
    return rows.map(({ seq, id, state, body }) => ({ seq: Number(seq), id, state, body: jsonOf(body) }));
  }

  async page({ key, start, end }: Segment, count: number, reverse: boolean): Promise<readonly string[]> {
    const order = reverse ? "seq DESC" : "seq";
    const rows = await this.runner.rows<{ body: string }>(
      `SELECT body::text AS body FROM (
         SELECT seq, body, sum(pg_column_size(body)) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS stored
         FROM (SELECT seq, body FROM ${this.#handle.schema}.entries
           WHERE session_key = $1 AND seq >= $2 AND seq < $3 ORDER BY ${order} LIMIT $4) AS page
       ) AS sized WHERE stored <= ${STORED_BYTES} OR stored = pg_column_size(body) ORDER BY ${order}`,
      [key, start, end, count],
    );
    return rows.map(({ body }) => jsonOf(body));
  }

  async leaseToken({ head }: LoadedSession): Promise<number | null> {
    return (await this.#parts.leases.current(head.header.id, this.runner))?.token ?? null;
  }

  async commit(
    session: LoadedSession,
    plan: EncodedPlan,
    { leaseToken, idsUnchecked }: CommitConditions,
  ): Promise<LoadedSession | "behind"> {
    const { key, head: before } = session;
    const { head } = plan.located;
    const [batch = [], ...others] = batchesOf(plan.rows);
    const keepsStatus = head.status === before.status;
    // An append that needs more than one statement is repeated in a transaction.
    if (this.#transaction === null && (others.length > 0 || !keepsStatus)) return "behind";
    if (this.#transaction !== null && !(session.marked && keepsStatus)) await this.#mark(key, head.status);
    const runs = sameRuns(before, head) ? null : runsColumns(head);
    try {
      const count = await this.runner.change(appendStatement(this.#handle, runs !== null), [
        ...[key, before.version, head.updatedAt, head.modifiedAt, head.version, recordsOf(batch)],
        ...[leaseToken, this.#parts.leases.nowMs(), idsUnchecked],
        ...(runs === null ? [] : [runs.runs, runs.due]),
      ]);
      if (count === 0) return "behind";
    } catch (error) {
      // With a stricter default isolation level, the database fails here instead of checking the row again.
      if (this.#transaction === null && isRetryable(error)) return "behind";
      throw error;
    }
    await this.#insert(key, others);
    return { ...plan.located, key, segments: session.segments, marked: true };
  }

  /** Safe for appends: the engine looks up the ids of an append before it retries it. */
  retryDelayMs(error: unknown, attempt: number): number | null {
    return this.#handle.retryDelayMs(error, attempt);
  }

  /** The same port, within a transaction. */
  forTransaction(transaction: Transaction): PostgresPort {
    return new PostgresPort(this.#parts, transaction);
  }

  locked<T>(work: (port: PostgresPort) => Coroutine<T>): Promise<T> {
    return this.#handle.transaction((transaction) => runAsync(work(this.forTransaction(transaction))));
  }

  async make({ located, origin, rows }: NewRowSession<Segment>, limits: MakeLimits): Promise<LoadedSession> {
    const { header } = located.head;
    const { schema, dialect } = this.#handle;
    const taken = await this.runner.rows(`SELECT 1 AS taken FROM ${schema}.sessions WHERE id = $1`, [header.id]);
    if (taken.length > 0) throw sessionExists(header.id);
    await runAsync(checkSqlLimits(dialect, this.runner, sessionLimitsOf(header, limits)));
    const key = await this.#insertSession(located.head, origin);
    await this.#insert(key, batchesOf(rows));
    return { ...located, key, marked: false, segments: segmentsAfter(origin, origin.at(-1)?.end ?? 0, key) };
  }

  async #readBatch(): Promise<ReadonlyMap<string, StateRow>> {
    const { keys } = this.#batch as RowBatch;
    this.#batch = null;
    const rows = await this.runner.rows<StateRow & { readonly key: string }>(
      `SELECT session_key AS key, seq, id, state FROM ${this.#handle.schema}.entries
       JOIN json_to_recordset($1::text::json) AS wanted (key bigint, seq bigint) USING (seq) WHERE session_key = wanted.key`,
      [JSON.stringify(keys)],
    );
    return new Map(rows.map(({ key, seq, id, state }) => [`${key} ${seq}`, { seq: Number(seq), id, state }]));
  }

  /** Marks a locked session, so that the single statement of an append finds it, and updates the status for listings. */
  async #mark(key: number, status: string): Promise<void> {
    const { schema } = this.#handle;
    await this.runner.change(
      `WITH marked AS (UPDATE ${schema}.heads SET marked = true WHERE session_key = $1)
       UPDATE ${schema}.sessions SET unsettled = true, unsearched = true, status = $2 WHERE key = $1`,
      [key, status],
    );
  }

  async #insert(key: number, batches: readonly (readonly StoredRow[])[]): Promise<void> {
    for (const batch of batches) {
      await this.runner.change(
        `INSERT INTO ${this.#handle.schema}.entries (session_key, seq, id, state, body)
         SELECT $1, seq, id, state, body::json
         FROM json_to_recordset($2::text::json) AS new (seq bigint, id text, state text, body text)`,
        [key, recordsOf(batch)],
      );
    }
  }

  async #insertSession(head: SessionHead, origin: readonly Segment[]): Promise<number> {
    const { header } = head;
    const { runs, due } = runsColumns(head);
    const { schema } = this.#handle;
    const version = origin.at(-1)?.end ?? 0;
    const parents = parentsOf(head).map((id) => ({ id, forked: header.forkedFrom?.sessionId === id }));
    const [row] = await this.runner.rows<{ key: string }>(
      `WITH made AS (
         INSERT INTO ${schema}.sessions (id, user_id, cwd, status, idle_at, listed_at, origin_key, origin_version,
           segments, searched, header, runs, runs_due)
         VALUES ($1, $2, $3, $4, $6, $7, $8, $9, $10, $9, $11::text::jsonb, $12, $13)
         ON CONFLICT (id) DO NOTHING RETURNING key
       ), parents AS (
         INSERT INTO ${schema}.session_parents (parent_id, session_key, forked)
         SELECT new.id, key, forked FROM made
         CROSS JOIN json_to_recordset($14::text::json) AS new (id text, forked boolean)
       )
       INSERT INTO ${schema}.heads (session_key, session_id, version, updated_at, modified_at)
       SELECT key, $1, $5, $6, $7 FROM made RETURNING session_key AS key`,
      [
        ...[header.id, header.userId, header.cwd, head.status, head.version, head.updatedAt, head.modifiedAt],
        ...[origin.at(-1)?.key ?? null, version, encodeSegments(segmentsAfter(origin, version, 0))],
        ...[toJsonb(JSON.stringify(header)), runs, due, JSON.stringify(parents)],
      ],
    );
    if (row === undefined) throw sessionExists(header.id);
    return Number(row.key);
  }
}

/**
 * The SQL of an append: one statement, so that it is one round trip and atomic. The UPDATE of the row in `heads` waits for
 * concurrent writers and then checks its conditions on the row that they left, so no condition can be outdated. The row of
 * a deleted session is not `marked`, so nothing is appended to it. With `updatesRuns`, the statement also updates the row in
 * `sessions`. It then locks that row first, in the same order as all other code, to prevent deadlocks.
 */
function appendStatement({ schema, channel }: PostgresHandle, updatesRuns: boolean): string {
  const locked = `locked AS (SELECT key FROM ${schema}.sessions WHERE key = $1 FOR NO KEY UPDATE), `;
  const runs = `, updated_runs AS (
      UPDATE ${schema}.sessions SET runs = $10, runs_due = $11 FROM grown WHERE key = session_key
    )`;
  return `WITH ${updatesRuns ? locked : ""}grown AS (
      UPDATE ${schema}.heads
      SET version = $5, updated_at = $3, modified_at = $4
      ${updatesRuns ? "FROM locked" : ""}
      WHERE session_key = ${updatesRuns ? "key" : "$1"} AND version = $2 AND marked
        AND ($7::bigint IS NULL OR lease_token = $7 AND lease_until_ms > coalesce($8::bigint, ${DATABASE_NOW_MS}))
        AND NOT ($9::boolean AND EXISTS (
          SELECT 1 FROM json_to_recordset($6::text::json) AS new (id text)
          CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.entries WHERE session_key = $1 AND entries.id = new.id LIMIT 1) AS found
        ))
      RETURNING session_key, ${notifyIfWatched(channel)}
    )${updatesRuns ? runs : ""}
    INSERT INTO ${schema}.entries (session_key, seq, id, state, body)
    SELECT session_key, seq, id, state, body::json FROM grown
    CROSS JOIN json_to_recordset($6::text::json) AS new (seq bigint, id text, state text, body text)`;
}

/** Rows as the JSON value that is bound to a statement. */
function recordsOf(rows: readonly StoredRow[]): string {
  return JSON.stringify(rows.map(({ seq, id, state, body }) => ({ seq, id, state, body: toJsonb(body) })));
}

/** Splits rows into batches small enough for one statement. */
function batchesOf(rows: readonly StoredRow[]): StoredRow[][] {
  const batches: StoredRow[][] = [];
  let batch: StoredRow[] = [];
  let characters = 0;
  for (const row of rows) {
    if (batch.length === BATCH_ROWS || (batch.length > 0 && characters + row.body.length > BATCH_CHARACTERS)) {
      batches.push(batch);
      batch = [];
      characters = 0;
    }
    batch.push(row);
    characters += row.body.length;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
