import { SessionError } from "../../session/errors.ts";
import { parentsOf } from "../../session/query.ts";
import { type Asking, runLater } from "../rows/asking.ts";
import type { EncodedPlan } from "../rows/encode-plan.ts";
import { sessionExists } from "../rows/row-maker.ts";
import type { CommitConditions, MakeLimits, NewSession, StateRow, StoredRow } from "../rows/row-port.ts";
import { runsColumns } from "../rows/runs-columns.ts";
import { clipSegments, type Segment, segmentsAfter } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkLimits } from "../sql/make-limits.ts";
import type { SqlRunner } from "../sql/sql-database.ts";
import type { SqlPort } from "../sql/sql-eraser.ts";
import { EntryWriter } from "./entry-writer.ts";
import { jsonOf, toJsonb } from "./jsonb-text.ts";
import type { LeaseColumns } from "./lease-columns.ts";
import { isRetryable } from "./postgres-failure.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import {
  encodeRest,
  encodeSegments,
  IS_LIVE,
  type LoadedSession,
  SESSION_COLUMNS,
  type SessionRow,
  sessionOf,
  sessionsIn,
  settingsColumn,
} from "./session-row.ts";

/** What a port needs of its store. */
export interface PortParts {
  readonly handle: PostgresHandle;
  readonly cache: SessionCache<LoadedSession>;
  readonly leases: LeaseColumns;
}

/**
 * The rows of a PostgreSQL database, or of one transaction. Outside of one, one statement writes an append, if the
 * session is still as it was planned on; in one, the session's rows stay locked once they are loaded.
 */
export class PostgresPort implements SqlPort<LoadedSession> {
  readonly checksIds = true;
  readonly runner: SqlRunner;
  readonly #parts: PortParts;
  readonly #handle: PostgresHandle;
  readonly #transaction: Transaction | null;
  readonly #writer: EntryWriter;

  constructor(parts: PortParts, transaction: Transaction | null = null) {
    this.#parts = parts;
    this.#handle = parts.handle;
    this.#transaction = transaction;
    this.runner = transaction ?? parts.handle;
    this.#writer = new EntryWriter(parts.handle);
  }

  async load(sessionId: string): Promise<LoadedSession | null> {
    // A purge must wait until a fork can be seen, and an append until the one before is.
    const lock = this.#transaction === null ? "" : "FOR NO KEY UPDATE";
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(this.#handle.schema)} WHERE id = $1 AND ${IS_LIVE} ${lock}`;
    const [row] = await this.#read<SessionRow>(sql, [sessionId]);
    return row === undefined ? null : this.sessionOf(row);
  }

  /** Live sessions as they stand now, by their ids. */
  async loadAll(sessionIds: readonly string[]): Promise<ReadonlyMap<string, LoadedSession>> {
    const from = sessionsIn(this.#handle.schema);
    const wanted = "id = ANY (ARRAY (SELECT json_array_elements_text($1::text::json)))";
    const sql = `SELECT ${SESSION_COLUMNS} FROM ${from} WHERE ${wanted} AND ${IS_LIVE}`;
    const rows = await this.#read<SessionRow>(sql, [JSON.stringify(sessionIds)]);
    return new Map(rows.map((row) => [row.id, this.sessionOf(row)]));
  }

  /** The session of a row. */
  sessionOf(row: SessionRow): LoadedSession {
    const session = sessionOf(row, this.#parts.cache.get(row.id));
    this.#parts.cache.remember(session);
    return session;
  }

  async rowAt({ key }: Segment, seq: number): Promise<StateRow | undefined> {
    const sql = `SELECT id, state FROM ${this.#handle.schema}.entries WHERE session_key = $1 AND seq = $2`;
    const [row] = await this.#read<Omit<StateRow, "seq">>(sql, [key, seq]);
    return row && { seq, ...row };
  }

  async findRows({ segments, head }: LoadedSession, ids: readonly string[]): Promise<readonly StoredRow[]> {
    // One look into the index for each id and part; a join might read the whole log instead.
    const rows = await this.#read<StoredRow>(
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
    const rows = await this.#read<{ body: string }>(
      `SELECT body::text AS body FROM ${this.#handle.schema}.entries
       WHERE session_key = $1 AND seq >= $2 AND seq < $3 ORDER BY seq ${reverse ? "DESC" : ""} LIMIT $4`,
      [key, start, end, count],
    );
    return rows.map(({ body }) => jsonOf(body));
  }

  leaseToken({ key }: LoadedSession): Promise<number | null> {
    return this.#parts.leases.tokenOf(key, this.#transaction ?? this.#handle);
  }

  commit(session: LoadedSession, plan: EncodedPlan, conditions: CommitConditions): Promise<LoadedSession | "behind"> {
    if (this.#transaction !== null) return this.#commitLocked(this.#transaction, session, plan);
    // What takes more than one statement is done in a transaction.
    if (plan.place.head.status !== session.head.status || !this.#writer.fits(plan)) return Promise.resolve("behind");
    return this.#writer.append(this.#handle, session, plan, { ...conditions, nowMs: this.#parts.leases.nowMs() }).then(
      ({ written }) => (written ? movedTo(session, plan) : "behind"),
      (error: unknown) => {
        // A database whose transactions are stricter by default refuses instead of looking at the row again.
        if (isRetryable(error)) return "behind";
        throw error;
      },
    );
  }

  locked<T>(steps: (port: PostgresPort) => Asking<T>): Promise<T> {
    return this.#handle.transaction((transaction) => runLater(steps(new PostgresPort(this.#parts, transaction))));
  }

  async make({ place, origin, last, rows }: NewSession<Segment>, limits: MakeLimits): Promise<LoadedSession> {
    const transaction = this.#transaction as Transaction;
    const { header } = place.head;
    const { schema } = this.#handle;
    const taken = await this.#read(`SELECT 1 AS taken FROM ${schema}.sessions WHERE id = $1`, [header.id]);
    if (taken.length > 0) throw sessionExists(header.id);
    await runLater(checkLimits(this.#handle.dialect, transaction, header, limits));
    const key = await this.#insertSession(transaction, { place, origin, last });
    const parents = parentsOf(place.head).map((parent) => ({
      parent,
      forked: header.forkedFrom?.sessionId === parent,
    }));
    if (parents.length > 0) {
      await transaction.write(
        `INSERT INTO ${schema}.session_parents (parent_id, session_key, forked)
         SELECT parent, $1, forked FROM json_to_recordset($2::text::json) AS new (parent text, forked boolean)`,
        [key, JSON.stringify(parents)],
      );
    }
    await this.#writer.insert(transaction, key, rows);
    return { ...place, key, marked: false, segments: segmentsAfter(origin, origin.at(-1)?.end ?? 0, key) };
  }

  missing(seq: number): SessionError {
    return new SessionError(
      "STORE_FAILED",
      `The PostgreSQL database ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or the database is damaged.`,
    );
  }

  #read<Row>(sql: string, values: readonly (string | number)[]): Promise<readonly Row[]> {
    return (this.#transaction ?? this.#handle).read<Row>(sql, values);
  }

  /** Where the session is locked, its lease and its ids have been looked at, and stay as they are. */
  async #commitLocked(transaction: Transaction, session: LoadedSession, plan: EncodedPlan): Promise<LoadedSession> {
    const { key, head, marked } = session;
    const { status } = plan.place.head;
    if (!marked || status !== head.status) await this.#writer.mark(transaction, key, status);
    const conditions = { leaseToken: null, nowMs: null, idsUnseen: false };
    const { written, others } = await this.#writer.append(transaction, session, plan, conditions);
    if (!written) throw new Error(`Session ${head.header.id} changed while it was locked.`);
    await this.#writer.insert(transaction, key, others);
    return movedTo(session, plan);
  }

  async #insertSession(
    transaction: Transaction,
    { place, origin, last }: Omit<NewSession<Segment>, "rows">,
  ): Promise<number> {
    const { head } = place;
    const { header } = head;
    const { runs, due } = runsColumns(head);
    const { schema } = this.#handle;
    const version = origin.at(-1)?.end ?? 0;
    const [row] = await transaction.write<{ key: string }>(
      `WITH made AS (
         INSERT INTO ${schema}.sessions (id, user_id, cwd, status, idle_at, listed_at, origin_key, origin_version,
           segments, searched, header, runs, runs_due)
         VALUES ($1, $2, $3, $4, $6, $7, $8, $9, $10, $9, $11::text::jsonb, $16, $17)
         ON CONFLICT (id) DO NOTHING RETURNING key
       )
       INSERT INTO ${schema}.heads
         (session_key, session_id, version, updated_at, modified_at, last_id, state, rest, settings)
       SELECT key, $1, $5, $6, $7, $12, $13, $14, $15 FROM made RETURNING session_key AS key`,
      [
        ...[header.id, header.userId, header.cwd, head.status, head.version, head.updatedAt, head.modifiedAt],
        ...[origin.at(-1)?.key ?? null, version, encodeSegments(segmentsAfter(origin, version, 0))],
        ...[toJsonb(JSON.stringify(header)), last?.id ?? null, last?.state ?? null, encodeRest(place)],
        ...[settingsColumn(head.path.settings), runs, due],
      ],
    );
    if (row === undefined) throw sessionExists(header.id);
    return Number(row.key);
  }
}

function movedTo({ key, segments }: LoadedSession, { place }: EncodedPlan): LoadedSession {
  const { head, leafSeq, factsSeq } = place;
  return { key, segments, marked: true, head, leafSeq, factsSeq };
}
