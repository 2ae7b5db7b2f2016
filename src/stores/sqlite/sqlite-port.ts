import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { parentsOf } from "../../session/query.ts";
import { type Coroutine, runSync } from "../rows/coroutine.ts";
import type { EncodedPlan } from "../rows/row-encoding.ts";
import { sessionExists } from "../complete/session-exists.ts";
import { sessionLimitsOf, type MakeLimits } from "../complete/session-limits.ts";
import {
  type CommitConditions,
  type NewRowSession,
  PAGE_BYTES,
  type StateRow,
  type StoredRow,
} from "../rows/row-port.ts";
import { RowReader } from "../rows/row-reader.ts";
import { runsColumns, sameRuns } from "../rows/runs-columns.ts";
import { SEQ_MAX, type Segment, segmentsAfter } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkSqlLimits } from "../sql/sql-limits.ts";
import type { SqlPort, SqlSession } from "../sql/sql-port.ts";
import type { LeaseRows } from "./lease-rows.ts";
import { BLOCK_ENTRIES, IN_SEGMENT } from "./schema.ts";
import { LAST_SEQ } from "./refresh-session-rows.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

const LOCATE = `SELECT id, key, coalesce(${LAST_SEQ} + 1, origin_version) AS version FROM sessions WHERE id = ?`;
const LOCATE_LIVE = `${LOCATE} AND deleted_at IS NULL`;
const LOCATE_DELETED = `${LOCATE} AND deleted_at IS NOT NULL`;
const SESSION = "SELECT key, origin_key, origin_version, updated_at, header FROM sessions WHERE key = ?";
const ROW_AT = "SELECT seq, id, state FROM entries WHERE session_key = ? AND seq = ?";
const FIND = `SELECT seq, id, state, body FROM entries WHERE session_key = ? AND seq =
    (SELECT seq FROM entry_ids WHERE session_key = ? AND id = ? AND seq < ?)
  UNION ALL
  SELECT seq, id, state, body FROM entries WHERE ${IN_SEGMENT} AND id = ?
  LIMIT 1`;
const PAGE = `SELECT body FROM entries WHERE ${IN_SEGMENT} ORDER BY seq LIMIT ?`;
const PAGE_BACKWARD = `SELECT body FROM entries WHERE ${IN_SEGMENT} ORDER BY seq DESC LIMIT ?`;
/** SQL for the length of a body: the first reads only the row header, but exists only since SQLite 3.43. */
const BYTES_OF = ["octet_length(body)", "length(CAST(body AS BLOB))"] as const;
const INSERT = "INSERT OR IGNORE INTO entries SELECT session_key, ?2, ?3, ?4, ?5 FROM unsettled WHERE session_key = ?1";
const INSERT_UNDER_LEASE = `INSERT OR IGNORE INTO entries SELECT session_key, ?2, ?3, ?4, ?5
  FROM unsettled JOIN leases USING (session_key) WHERE session_key = ?1 AND token = ?6 AND expires_ms > ?7`;
const ROWS_AT_ONCE = 16;
const INSERT_ONE = "INSERT INTO entries VALUES (?, ?, ?, ?, ?)";
const INSERT_MANY = INSERT_ONE + ", (?, ?, ?, ?, ?)".repeat(ROWS_AT_ONCE - 1);
const INDEX_IDS = `INSERT INTO entry_ids SELECT session_key, id, seq FROM entries WHERE ${IN_SEGMENT}`;

/** A session and the length of its log. */
export interface SessionVersion {
  readonly id: string;
  readonly key: number;
  readonly version: number;
}

interface SessionRow {
  readonly key: number;
  readonly origin_key: number | null;
  readonly origin_version: number;
  readonly updated_at: string;
  readonly header: string;
}

/**
 * The rows of an SQLite database.
 *
 * A row is inserted at the position after the head that it was planned on, if the session is in `unsettled` and that
 * position is free. Both are conditions of the INSERT itself, so an append usually is a single statement.
 */
export class SqlitePort implements SqlPort<SqlSession> {
  readonly checksIds = false;
  readonly storeName: string;
  readonly runner: SqliteHandle;
  readonly #reader: RowReader<Segment, SqlSession>;
  readonly #leases: LeaseRows;
  #isLocked = false;
  #bytesOf: (typeof BYTES_OF)[number] | null = null;

  constructor(handle: SqliteHandle, cache: SessionCache<SqlSession>, leases: LeaseRows) {
    this.runner = handle;
    this.storeName = `database ${handle.address}`;
    this.#reader = new RowReader(this, cache);
    this.#leases = leases;
  }

  load(sessionId: string, deleted?: boolean): SqlSession | null {
    const found = this.runner.row<SessionVersion>(deleted === true ? LOCATE_DELETED : LOCATE_LIVE, [sessionId]);
    return found === undefined ? null : this.loadVersion(found);
  }

  /** A session, live or deleted, at a version; null if it has been purged. */
  loadVersion({ id, key, version }: SessionVersion): SqlSession | null {
    const { cache } = this.#reader;
    const cached = cache.get(id);
    const known = cached?.key === key ? cached : undefined;
    if (known?.head.version === version) return known;
    const row = this.runner.row<SessionRow>(SESSION, [key]);
    if (row === undefined) return null;
    const header = known?.head.header ?? freezeDeep(JSON.parse(row.header) as SessionHeader);
    const segments = known?.segments ?? this.#segmentsOf(row);
    const { head, leafSeq, factsSeq } = runSync(this.#reader.headAt(segments, header, version));
    // Before the first own append, the last row is inherited and has the time of another session.
    const updatedAt = version === row.origin_version ? row.updated_at : head.updatedAt;
    const loaded = { key, segments, head: Object.freeze({ ...head, updatedAt }), leafSeq, factsSeq };
    cache.remember(loaded);
    return loaded;
  }

  rowAt({ key }: Segment, seq: number): StateRow | undefined {
    return this.runner.row(ROW_AT, [key, seq]);
  }

  findRows(session: SqlSession, ids: readonly string[]): readonly StoredRow[] {
    return ids.flatMap((id) => this.#findRow(session, id) ?? []);
  }

  page({ key, start, end }: Segment, count: number, reverse: boolean): readonly string[] {
    const sql = reverse ? PAGE_BACKWARD : PAGE;
    return this.runner.rows<{ body: string }>(sql, [key, start, end, count]).map(({ body }) => body);
  }

  /** Measured in advance, because the driver reads all rows of a query into memory. */
  measure({ key, start, end }: Segment, count: number, reverse: boolean): { count: number; bytes: number } {
    const [newer, older] = BYTES_OF;
    this.#bytesOf ??= this.runner.row("SELECT 1 FROM pragma_function_list WHERE name = 'octet_length'") ? newer : older;
    const sizes = (reverse ? PAGE_BACKWARD : PAGE).replace("SELECT body", `SELECT ${this.#bytesOf} AS bytes`);
    const values = [key, start, end, count];
    // Most pages fit as a whole, so first only their sum is read.
    const all = this.runner.row<{ bytes: number | null }>(`SELECT sum(bytes) AS bytes FROM (${sizes})`, values);
    if ((all?.bytes ?? 0) <= PAGE_BYTES) return { count, bytes: all?.bytes ?? 0 };
    const fitting = { count: 0, bytes: 0 };
    for (const { bytes } of this.runner.rows<{ bytes: number }>(sizes, values)) {
      if (fitting.count > 0 && fitting.bytes + bytes > PAGE_BYTES) break;
      fitting.count += 1;
      fitting.bytes += bytes;
    }
    return fitting;
  }

  leaseToken({ key }: SqlSession): number | null {
    return this.#leases.tokenOf(key);
  }

  commit(session: SqlSession, plan: EncodedPlan, conditions: CommitConditions): SqlSession | "behind" {
    if (this.#isLocked) {
      this.runner.change("INSERT OR IGNORE INTO unsettled VALUES (?)", [session.key]);
      return this.#write(session, plan, conditions);
    }
    const { head } = plan.located;
    const isSingleStatement =
      plan.rows.length === 1 && head.version % BLOCK_ENTRIES !== 0 && hasSameColumns(session.head, head);
    if (isSingleStatement) return this.#insertRows(session, plan, conditions);
    return this.runner.transaction(() => this.#write(session, plan, conditions));
  }

  locked<T>(work: (port: this) => Coroutine<T>): T {
    return this.runner.transaction(() => {
      this.#isLocked = true;
      try {
        return runSync(work(this));
      } finally {
        this.#isLocked = false;
      }
    });
  }

  make({ located, origin, rows }: NewRowSession<Segment>, limits: MakeLimits): SqlSession {
    const { head } = located;
    const { header } = head;
    const taken = this.runner.row("SELECT 1 FROM sessions WHERE id = ?", [header.id]);
    if (taken !== undefined) throw sessionExists(header.id);
    runSync(checkSqlLimits(this.runner.dialect, this.runner, sessionLimitsOf(header, limits)));
    const inherited = origin.at(-1)?.end ?? 0;
    const key = this.#insertSession(head, origin.at(-1)?.key ?? null, inherited);
    this.#insertInitialRows(key, rows);
    this.#updateIndexes(key, { ...head, version: inherited, openRuns: [] }, head);
    return { ...located, key, segments: segmentsAfter(origin, inherited, key) };
  }

  /** The segments of a session's log, in order. The last is its own and has no end. */
  #segmentsOf(session: SessionRow): readonly Segment[] {
    const segments: Segment[] = [];
    let end = SEQ_MAX;
    let next: SessionRow | undefined = session;
    // Every origin was created earlier and so has a smaller key: the loop ends.
    while (next !== undefined) {
      segments.push({ key: next.key, start: next.origin_version, end });
      end = next.origin_version;
      next = next.origin_key === null ? undefined : this.runner.row<SessionRow>(SESSION, [next.origin_key]);
    }
    return Object.freeze(segments.reverse());
  }

  #findRow({ segments, head }: SqlSession, id: string): StoredRow | undefined {
    for (const { key, start, end } of segments.toReversed()) {
      const bound = Math.min(end, head.version);
      if (bound <= start) continue;
      // Entries after the last complete block are not in `entry_ids` yet.
      const row = this.runner.row<StoredRow>(FIND, [key, key, id, bound, key, wholeBlocks(bound), bound, id]);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  /** Inserts the rows of a new session, many per statement: the driver's overhead per statement exceeds the cost of a row. */
  #insertInitialRows(key: number, rows: readonly StoredRow[]): void {
    for (let from = 0; from < rows.length; ) {
      const some = rows.slice(from, from + (rows.length - from < ROWS_AT_ONCE ? 1 : ROWS_AT_ONCE));
      const values = some.flatMap(({ seq, id, state, body }) => [key, seq, id, state, body]);
      this.runner.change(some.length === 1 ? INSERT_ONE : INSERT_MANY, values);
      from += some.length;
    }
  }

  #write(session: SqlSession, plan: EncodedPlan, conditions: CommitConditions): SqlSession | "behind" {
    const written = this.#insertRows(session, plan, conditions);
    if (written !== "behind") this.#updateIndexes(session.key, session.head, written.head);
    return written;
  }

  /** Several rows must be written in a transaction: if the first insert succeeds, so do the others. */
  #insertRows(
    { key, segments }: SqlSession,
    { rows, located: { head, leafSeq, factsSeq } }: EncodedPlan,
    { leaseToken }: CommitConditions,
  ): SqlSession | "behind" {
    for (const { seq, id, state, body } of rows) {
      const values = [key, seq, id, state, body];
      if (leaseToken !== null) values.push(leaseToken, this.#leases.nowMs());
      if (this.runner.change(leaseToken === null ? INSERT : INSERT_UNDER_LEASE, values) === 0) return "behind";
    }
    return { key, segments, head, leafSeq, factsSeq };
  }

  /** Writes what goes with new entries: completed blocks of ids, and the columns of `sessions` that must always be current. */
  #updateIndexes(key: number, before: SessionHead, after: SessionHead): void {
    const start = wholeBlocks(before.version);
    const end = wholeBlocks(after.version);
    if (end > start) this.runner.change(INDEX_IDS, [key, start, end]);
    if (hasSameColumns(before, after)) return;
    const { runs, due } = runsColumns(after);
    const set = "UPDATE sessions SET status = ?, name = ?, runs = ?, runs_due = ? WHERE key = ?";
    this.runner.change(set, [after.status, after.name, runs, due, key]);
  }

  #insertSession(head: SessionHead, originKey: number | null, originVersion: number): number {
    const { header } = head;
    const { key } = this.runner.row(
      `INSERT INTO sessions
         (id, user_id, cwd, status, name, version, updated_at, modified_at, origin_key, origin_version, header)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
      [
        ...[header.id, header.userId, header.cwd, head.status, head.name],
        ...[head.version, head.updatedAt, head.modifiedAt, originKey, originVersion, JSON.stringify(header)],
      ],
    ) as { key: number };
    for (const parent of parentsOf(head)) {
      const forked = header.forkedFrom?.sessionId === parent ? 1 : 0;
      this.runner.change("INSERT INTO session_parents VALUES (?, ?, ?)", [parent, key, forked]);
    }
    return key;
  }
}

/** Whether two heads have the same values in the columns of `sessions` that must always be current. */
function hasSameColumns(before: SessionHead, after: SessionHead): boolean {
  return before.status === after.status && before.name === after.name && sameRuns(before, after);
}

function wholeBlocks(version: number): number {
  return version - (version % BLOCK_ENTRIES);
}
