import { type AppendPlan, type PlannedAppend, planNow } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { type EncodedPlan, encodePlan, type NewRow } from "../rows/encode-plan.ts";
import { type EntryWriter, needsFinish } from "./entry-writer.ts";
import type { LeaseRows } from "./lease-rows.ts";
import type { LoadedSession, SessionLog } from "./session-log.ts";
import type { SqliteHandle, SqliteStatement } from "./sqlite-handle.ts";

/** How many rows one statement writes; more go one by one, in a transaction. */
const ROWS_AT_ONCE_MAX = 8;

const UNSETTLED = "EXISTS (SELECT 1 FROM unsettled WHERE session_key = ?)";
const LEASED = "EXISTS (SELECT 1 FROM leases WHERE session_key = ? AND token = ? AND expires_ms > ?)";

/** Thrown inside a transaction to undo it: the head that was planned on is not the current one. */
class HeadIsBehind extends Error {}

interface Attempt {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly nowMs: number;
  readonly now: string;
}

/**
 * Appends to sessions.
 *
 * A remembered head needs no reading: the row goes to the position after it, if the session takes rows and that
 * position is free. Both are conditions of the one statement that writes. Whatever does not work out that way is done
 * again on the current head, under the write lock, where nothing can come in between.
 */
export class Appender {
  readonly #handle: SqliteHandle;
  readonly #log: SessionLog;
  readonly #writer: EntryWriter;
  readonly #leases: LeaseRows;
  readonly #clock: () => Date;
  readonly #insert: SqliteStatement;
  readonly #insertUnderLease: SqliteStatement;
  readonly #unsettle: SqliteStatement;
  #lastMs = Number.NaN;
  #lastTime = "";

  constructor(handle: SqliteHandle, log: SessionLog, writer: EntryWriter, leases: LeaseRows, clock: () => Date) {
    this.#handle = handle;
    this.#log = log;
    this.#writer = writer;
    this.#leases = leases;
    this.#clock = clock;
    const insert = `INSERT OR IGNORE INTO entries SELECT ?, ?, ?, ?, ? WHERE ${UNSETTLED}`;
    this.#insert = handle.prepare(insert);
    this.#insertUnderLease = handle.prepare(`${insert} AND ${LEASED}`);
    this.#unsettle = handle.prepare("INSERT OR IGNORE INTO unsettled VALUES (?)");
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): AppendResult {
    const attempt = this.#attemptNow(drafts, options);
    const known = this.#log.cached(sessionId);
    try {
      return (
        (known === undefined ? null : this.#appendTo(known, attempt)) ??
        this.#handle.transaction(() => this.#appendLocked(sessionId, attempt))
      );
    } catch (error) {
      // Whether a write that failed left something behind is for the database to say.
      this.#log.forget(sessionId);
      throw error;
    }
  }

  #attemptNow(drafts: readonly CheckedDraft[], options: AppendOptions): Attempt {
    const now = this.#clock();
    const nowMs = now.getTime();
    // Many appends fall into one millisecond, and writing a time down is not cheap.
    if (nowMs !== this.#lastMs) this.#lastTime = now.toISOString();
    this.#lastMs = nowMs;
    return { drafts, options, nowMs, now: this.#lastTime };
  }

  /** Null when the remembered head is behind, or when a refusal must be checked on the current one. */
  #appendTo(session: LoadedSession, attempt: Attempt): AppendResult | null {
    const planned = this.#planOn(session, attempt);
    if (planned === null || planned.plan.added.length === 0) return null;
    const { plan, found } = planned;
    const encoded = encodePlan(session, plan, found);
    if (encoded.rows.length <= ROWS_AT_ONCE_MAX && !needsFinish(session.head, plan.head)) {
      const insert = encoded.rows.length === 1 ? this.#insertRows : this.#insertTogether;
      if (!insert.call(this, session.key, encoded, attempt)) return null;
    } else {
      try {
        this.#handle.transaction(() => {
          if (!this.#insertRows(session.key, encoded, attempt)) throw new HeadIsBehind();
          this.#writer.finish(session.key, session.head, plan.head);
        });
      } catch (error) {
        if (error instanceof HeadIsBehind) return null;
        throw error;
      }
    }
    return this.#done(session, plan, encoded);
  }

  #planOn(session: LoadedSession, { drafts, options, now }: Attempt): PlannedAppend | null {
    try {
      // The statement that writes checks the lease; here it is taken to be the right one.
      const leaseToken = options.guard?.leaseToken ?? null;
      const input = { head: session.head, drafts, options, leaseToken, now };
      return planNow(input, (wanted) => this.#log.look(session, wanted));
    } catch (error) {
      if (error instanceof SessionError) return null;
      throw error;
    }
  }

  #appendLocked(sessionId: string, attempt: Attempt): AppendResult {
    const { drafts, options, now, nowMs } = attempt;
    const session = this.#log.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    const leaseToken = options.guard?.leaseToken === undefined ? null : this.#leases.tokenOf(session.key, nowMs);
    const input = { head: session.head, drafts, options, leaseToken, now };
    const { plan, found } = planNow(input, (wanted) => this.#log.look(session, wanted));
    if (plan.added.length === 0) return { version: plan.head.version, entries: plan.entries, head: plan.head };
    const encoded = encodePlan(session, plan, found);
    this.#unsettle.run([session.key]);
    if (!this.#insertRows(session.key, encoded, attempt)) throw new Error(`Session ${sessionId} took no row.`);
    this.#writer.finish(session.key, session.head, plan.head);
    return this.#done(session, plan, encoded);
  }

  #insertRows(key: number, { rows }: EncodedPlan, { options, nowMs }: Attempt): boolean {
    const token = options.guard?.leaseToken;
    for (const { seq, id, state, body } of rows) {
      const changes =
        token === undefined
          ? this.#insert.run([key, seq, id, state, body, key])
          : this.#insertUnderLease.run([key, seq, id, state, body, key, key, token, nowMs]);
      if (changes === 0) return false;
    }
    return true;
  }

  /** Writes some rows with one statement, all or none: each of four statements would cost as much as this one. */
  #insertTogether(key: number, { rows }: EncodedPlan, { options, nowMs }: Attempt): boolean {
    const token = options.guard?.leaseToken;
    const values = rows.flatMap(({ seq, id, state, body }) => [key, seq, id, state, body]);
    const conditions = [key, (rows[0] as NewRow).seq, key, ...(token === undefined ? [] : [key, token, nowMs])];
    const places = rows.map(() => "(?, ?, ?, ?, ?)").join(", ");
    // Rows stand without a gap, so that where the first place is free, all are.
    const insert = `INSERT INTO entries SELECT * FROM (VALUES ${places})
      WHERE NOT EXISTS (SELECT 1 FROM entries WHERE session_key = ? AND seq = ?) AND ${UNSETTLED}`;
    const statement = this.#handle.prepare(token === undefined ? insert : `${insert} AND ${LEASED}`);
    return statement.run([...values, ...conditions]) === rows.length;
  }

  #done(session: LoadedSession, plan: AppendPlan, { place }: EncodedPlan): AppendResult {
    const { head, leafSeq, factsSeq } = place;
    this.#log.remember({ key: session.key, segments: session.segments, head, leafSeq, factsSeq });
    return { version: plan.head.version, entries: plan.entries, head: plan.head };
  }
}
