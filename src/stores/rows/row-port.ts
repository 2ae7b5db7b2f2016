import type { MakeLimits } from "../complete/session-limits.ts";
import type { MaybePromise } from "../../session/store-driver.ts";
import type { Coroutine } from "./coroutine.ts";
import type { EncodedPlan, LocatedHead } from "./row-encoding.ts";
import type { LogRange } from "./segments.ts";

/** The most bytes of entries in a page, except that a page with one entry may be larger. */
export const PAGE_BYTES: number = 1024 * 1024;

/** A session at one version. The log only grows, so a cached copy may be outdated but never holds a wrong entry. */
export interface RowSession<Part extends LogRange> extends LocatedHead {
  /** The parts of its log in order, each with the session whose rows hold it. The last part is its own and has no end. */
  readonly segments: readonly Part[];
}

/** A row without its entry. */
export interface StateRow {
  readonly seq: number;
  readonly id: string;
  /** An `EntryState`, as JSON. */
  readonly state: string;
}

/** A row of a log. */
export interface StoredRow extends StateRow {
  /** The entry, as JSON. */
  readonly body: string;
}

/** The conditions that `commit` must check, beside the version on which the rows were planned. */
export interface CommitConditions {
  /** The lease that must be live, or null if none is required. */
  readonly leaseToken: number | null;
  /** True if the ids of the rows were not looked up yet: `commit` must refuse ids that exist. Only if the port `checksIds`. */
  readonly idsUnchecked: boolean;
}

/** A session to create. */
export interface NewRowSession<Part extends LogRange> {
  readonly located: LocatedHead;
  /** The parts of another session's log that it begins with; empty unless it is a fork. */
  readonly origin: readonly Part[];
  /** Its own rows. */
  readonly rows: readonly StoredRow[];
}

/**
 * The interface that a store implements to keep logs as rows. A port only looks up and writes rows; the row engine decides what an
 * append, a read, a fork and a creation do. Each method may return its result synchronously or as a promise.
 */
export interface RowPort<Part extends LogRange, Session extends RowSession<Part>> {
  /** True if `commit` can refuse rows whose ids exist in the session's own part of the log; the engine then skips looking them up. */
  readonly checksIds: boolean;
  /** The name of the store in error messages: `database x.db`. */
  readonly storeName: string;
  /** The current version of a live session, or of a deleted one, or null. Inside `locked`, no other caller changes it. */
  load(sessionId: string, deleted?: boolean): MaybePromise<Session | null>;
  /** The row at a position within a part. */
  rowAt(part: Part, seq: number): MaybePromise<StateRow | undefined>;
  /** Rows with these ids, up to the version that was loaded. Ids that do not exist are left out. */
  findRows(session: Session, ids: readonly string[]): MaybePromise<readonly StoredRow[]>;
  /** The first `count` entries of a part as JSON, or the last if `reverse`: at least one, at most `PAGE_BYTES`. */
  page(part: Part, count: number, reverse: boolean): MaybePromise<readonly string[]>;
  /** How many entries that page would have, and their bytes. Implement it if that is known without reading them. */
  measure?(part: Part, count: number, reverse: boolean): { readonly count: number; readonly bytes: number };
  /** The token of the session's live lease, or null. */
  leaseToken(session: Session): MaybePromise<number | null>;
  /**
   * Writes the rows, the head and the columns that listings need in one transaction, and returns the session after it.
   * Returns `behind` if the session is not at the planned version or a condition does not hold; nothing is written then.
   * Returns `unsure` instead if an earlier attempt may have written the rows.
   */
  commit(
    session: Session,
    plan: EncodedPlan,
    conditions: CommitConditions,
  ): MaybePromise<Session | "behind" | "unsure">;
  /**
   * How long to wait before a failed write is retried, or null if this error must not be retried. `attempt` counts earlier
   * failures. The failed write may have taken effect. Leave it out if no error of the store is worth a retry.
   */
  retryDelayMs?(error: unknown, attempt: number): number | null;
  /** Runs work on a port that isolates it from concurrent changes, usually in a transaction, if the store can. The work may run several times. */
  locked<T>(work: (port: RowPort<Part, Session>) => Coroutine<T>): MaybePromise<T>;
  /** Creates a session. Called inside `locked`. @throws {SessionError} `SESSION_EXISTS` or `CAPACITY`. */
  make(session: NewRowSession<Part>, limits: MakeLimits): MaybePromise<Session>;
}
