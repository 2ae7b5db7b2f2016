import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import { parentsOf } from "../../session/query.ts";
import { type Asking, runNow } from "../rows/asking.ts";
import type { EncodedPlan, NewRow } from "../rows/encode-plan.ts";
import { sessionExists } from "../rows/row-maker.ts";
import type { CommitConditions, MakeLimits, NewSession, StateRow, StoredRow } from "../rows/row-port.ts";
import { RowReader } from "../rows/row-reader.ts";
import { runsColumns, sameRuns } from "../rows/runs-columns.ts";
import { type Segment, segmentsAfter } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkLimits } from "../sql/make-limits.ts";
import type { SqlRunner } from "../sql/sql-database.ts";
import type { SqlPort } from "../sql/sql-eraser.ts";
import type { LeaseRows } from "./lease-rows.ts";
import { BLOCK_ENTRIES } from "./schema.ts";
import { boundsOf, IN_SEGMENT } from "./segments.ts";
import { type LoadedSession, SessionLog } from "./session-log.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

const ROW = "seq, id, state";
const INSERT = "INSERT OR IGNORE INTO entries SELECT session_key, ?2, ?3, ?4, ?5 FROM unsettled";

/**
 * The rows of an SQLite database.
 *
 * A row goes to the position after the head that it was planned on, if the session takes rows and that position is free.
 * Both are conditions of the statement that writes it, so that an append is usually nothing but that statement.
 */
export class SqlitePort implements SqlPort<LoadedSession> {
  readonly checksIds = false;
  readonly runner: SqlRunner;
  readonly log: SessionLog;
  readonly #handle: SqliteHandle;
  readonly #leases: LeaseRows;
  readonly #clock: () => Date;
  #isLocked = false;
  readonly #row: SqliteStatement;
  readonly #find: SqliteStatement;
  readonly #forward: SqliteStatement;
  readonly #backward: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #insertUnderLease: SqliteStatement;

  constructor(
    handle: SqliteHandle,
    parts: { cache: SessionCache<LoadedSession>; leases: LeaseRows; clock: () => Date },
  ) {
    this.#handle = handle;
    this.runner = handle;
    this.#leases = parts.leases;
    this.#clock = parts.clock;
    this.log = new SessionLog(handle, new RowReader(this, parts.cache));
    this.#row = handle.prepare(`SELECT ${ROW} FROM entries WHERE session_key = ? AND seq = ?`);
    this.#find = handle.prepare(
      `SELECT ${ROW}, body FROM entries WHERE session_key = ? AND seq =
         (SELECT seq FROM entry_ids WHERE session_key = ? AND id = ? AND seq < ?)
       UNION ALL
       SELECT ${ROW}, body FROM entries WHERE ${IN_SEGMENT} AND id = ?
       LIMIT 1`,
    );
    const page = `SELECT body FROM entries WHERE ${IN_SEGMENT} ORDER BY seq`;
    this.#forward = handle.prepare(`${page} LIMIT ?`);
    this.#backward = handle.prepare(`${page} DESC LIMIT ?`);
    this.#insert = handle.prepare(`${INSERT} WHERE session_key = ?1`);
    this.#insertUnderLease = handle.prepare(
      `${INSERT} JOIN leases USING (session_key) WHERE session_key = ?1 AND token = ?6 AND expires_ms > ?7`,
    );
  }

  load(sessionId: string, _known?: LoadedSession, deleted?: boolean): LoadedSession | null {
    return this.log.load(sessionId, deleted);
  }

  rowAt({ key }: Segment, seq: number): StateRow | undefined {
    return this.#row.get<StateRow>([key, seq]);
  }

  findRows(session: LoadedSession, ids: readonly string[]): readonly StoredRow[] {
    return ids.flatMap((id) => this.#findRow(session, id) ?? []);
  }

  page(segment: Segment, count: number, reverse: boolean): readonly string[] {
    const statement = reverse ? this.#backward : this.#forward;
    return statement.all<{ body: string }>([...boundsOf(segment), count]).map(({ body }) => body);
  }

  leaseToken({ key }: LoadedSession): number | null {
    return this.#leases.tokenOf(key, this.#clock().getTime());
  }

  commit(session: LoadedSession, plan: EncodedPlan, conditions: CommitConditions): LoadedSession | "behind" {
    const oneStatement = plan.rows.length === 1 && !needsFinish(session.head, plan.place.head);
    if (this.#isLocked || oneStatement) return this.#write(session, plan, conditions);
    return this.#handle.transaction(() => this.#write(session, plan, conditions));
  }

  locked<T>(steps: (port: this) => Asking<T>): T {
    return this.#handle.transaction(() => {
      this.#isLocked = true;
      try {
        return runNow(steps(this));
      } finally {
        this.#isLocked = false;
      }
    });
  }

  make({ place, origin, rows }: NewSession<Segment>, limits: MakeLimits): LoadedSession {
    const { head } = place;
    const { header } = head;
    const taken = this.#handle.prepare("SELECT 1 FROM sessions WHERE id = ?").get([header.id]);
    if (taken !== undefined) throw sessionExists(header.id);
    runNow(checkLimits(this.#handle.dialect, this.#handle, header, limits));
    const inherited = origin.at(-1)?.end ?? 0;
    const key = this.#insertSession(head, origin.at(-1)?.key ?? null, inherited);
    const insert = this.#handle.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?)");
    for (const { seq, id, state, body } of rows) insert.run([key, seq, id, state, body]);
    this.#finish(key, { ...head, version: inherited, openRuns: [] }, head);
    return { ...place, key, segments: segmentsAfter(origin, inherited, key) };
  }

  missing(seq: number): SessionError {
    return new SessionError(
      "STORE_FAILED",
      `The database ${this.#handle.place} misses entry ${seq} of a session; it was purged just now, or the database is damaged.`,
    );
  }

  #findRow({ segments, head }: LoadedSession, id: string): StoredRow | undefined {
    for (const { key, start, end } of segments.toReversed()) {
      const bound = Math.min(end, head.version);
      if (bound <= start) continue;
      // Entries after the last whole block are not in the index of ids yet.
      const rest = boundsOf({ key, start: wholeBlocks(bound), end: bound });
      const row = this.#find.get<StoredRow>([key, key, id, bound, ...rest, id]);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  /** Several rows must be written in a transaction: there, where the first goes in, all others do. */
  #write(session: LoadedSession, { rows, place }: EncodedPlan, conditions: CommitConditions): LoadedSession | "behind" {
    const { key, segments } = session;
    if (this.#isLocked) this.#handle.prepare("INSERT OR IGNORE INTO unsettled VALUES (?)").run([key]);
    for (const row of rows) if (!this.#insertRow(key, row, conditions)) return "behind";
    this.#finish(key, session.head, place.head);
    const { head, leafSeq, factsSeq } = place;
    return { key, segments, head, leafSeq, factsSeq };
  }

  #insertRow(key: number, { seq, id, state, body }: NewRow, { leaseToken }: CommitConditions): boolean {
    const changes =
      leaseToken === null
        ? this.#insert.run([key, seq, id, state, body])
        : this.#insertUnderLease.run([key, seq, id, state, body, leaseToken, this.#clock().getTime()]);
    return changes > 0;
  }

  /** Writes what goes with new entries: finished blocks of ids, and what a session's row must always show. */
  #finish(key: number, before: SessionHead, after: SessionHead): void {
    const start = wholeBlocks(before.version);
    const end = wholeBlocks(after.version);
    if (end > start) {
      const index = `INSERT INTO entry_ids SELECT session_key, id, seq FROM entries WHERE ${IN_SEGMENT}`;
      this.#handle.prepare(index).run(boundsOf({ key, start, end }));
    }
    if (before.status !== after.status || before.name !== after.name) {
      const set = "UPDATE sessions SET status = ?, name = ? WHERE key = ?";
      this.#handle.prepare(set).run([after.status, after.name, key]);
    }
    if (!sameRuns(before, after)) {
      const { runs, due } = runsColumns(after);
      this.#handle.prepare("UPDATE sessions SET runs = ?, runs_due = ? WHERE key = ?").run([runs, due, key]);
    }
  }

  #insertSession(head: SessionHead, originKey: number | null, originVersion: number): number {
    const { header } = head;
    const { key } = this.#handle
      .prepare(
        `INSERT INTO sessions
           (id, user_id, cwd, status, name, version, updated_at, modified_at, origin_key, origin_version, header)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
      )
      .get<{ key: number }>([
        ...[header.id, header.userId, header.cwd, head.status, head.name],
        ...[head.version, head.updatedAt, head.modifiedAt, originKey, originVersion, JSON.stringify(header)],
      ]) as { key: number };
    const insertParent = this.#handle.prepare("INSERT INTO session_parents VALUES (?, ?, ?)");
    for (const parent of parentsOf(head)) {
      insertParent.run([parent, key, header.forkedFrom?.sessionId === parent ? 1 : 0]);
    }
    return key;
  }
}

/** Whether writing from one head to another is more than its rows. */
function needsFinish(before: SessionHead, after: SessionHead): boolean {
  return (
    wholeBlocks(before.version) !== wholeBlocks(after.version) ||
    before.status !== after.status ||
    before.name !== after.name ||
    !sameRuns(before, after)
  );
}

function wholeBlocks(version: number): number {
  return version - (version % BLOCK_ENTRIES);
}
