import type { MakeLimits } from "../complete/session-limits.ts";
import type { Asking, Reply } from "./asking.ts";
import type { EncodedPlan } from "./encode-plan.ts";
import type { HeadPlace } from "./entry-state.ts";
import type { LogRange } from "./segments.ts";

/** How many bytes of entries a page holds at most, unless its first entry alone takes more. */
export const PAGE_BYTES: number = 1024 * 1024;

/** A session as it stood at one version. Its log only grows, so nothing of this is ever wrong, only behind. */
export interface RowSession<Part extends LogRange> extends HeadPlace {
  /** The parts of its log, in order, and whose rows hold them; the last is its own and has no end. */
  readonly segments: readonly Part[];
}

/** A row of a log without its entry. */
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

/** What must hold for rows to be written, beside the head that they were planned on. */
export interface CommitConditions {
  /** The lease that must be live; null where none is asked for. */
  readonly leaseToken: number | null;
  /** Nobody has looked whether the ids of the rows are taken. Only on a port that `checksIds`. */
  readonly idsUnseen: boolean;
}

/** A session that is to be made. */
export interface NewRowSession<Part extends LogRange> {
  readonly place: HeadPlace;
  /** What it takes over from another session's log. */
  readonly origin: readonly Part[];
  /** Its own rows. */
  readonly rows: readonly StoredRow[];
}

/**
 * What a store that keeps logs as rows brings to the row engine. It looks up and writes; what an append, a read, a fork
 * and a creation are, the engine says. Every answer may come at once or later.
 */
export interface RowPort<Part extends LogRange, Session extends RowSession<Part>> {
  /** Whether `commit` can refuse rows whose ids the session itself has, so that nobody has to look before. */
  readonly checksIds: boolean;
  /** What the rows are in, for messages, as in `database x.db`. */
  readonly place: string;
  /** A live session, or a deleted one, as it stands now, or null. Under `locked`, it stays so. */
  load(sessionId: string, deleted?: boolean): Reply<Session | null>;
  /** The row at a position of the log that a part belongs to. */
  rowAt(part: Part, seq: number): Reply<StateRow | undefined>;
  /** Rows of a session by their ids, as far as it was loaded; those that it does not have are left out. */
  findRows(session: Session, ids: readonly string[]): Reply<readonly StoredRow[]>;
  /** The first or, in reverse, the last entries of a part, as JSON: no more than `PAGE_BYTES` hold, but one at least. */
  page(part: Part, count: number, reverse: boolean): Reply<readonly string[]>;
  /** How many entries such a page holds, and their bytes, where that is known without reading them. */
  measure?(part: Part, count: number, reverse: boolean): { readonly count: number; readonly bytes: number };
  /** The token of the session's live lease, or null. */
  leaseToken(session: Session): Reply<number | null>;
  /**
   * Writes rows, head and what listings show of it, all or nothing. The session as it is then; or `behind`, when it is not
   * as it was planned on or a condition does not hold; or `unsure`, when in addition an earlier try may have been written.
   */
  commit(session: Session, plan: EncodedPlan, conditions: CommitConditions): Reply<Session | "behind" | "unsure">;
  /**
   * How long to wait before a write is tried again that failed with this error, of how many times before; null where it is
   * not. It may have been carried out. Left out where no write fails that way.
   */
  waitAfter?(error: unknown, times: number): number | null;
  /** Runs steps on a port where, if the store can, nothing comes in between. They may be run several times. */
  locked<T>(steps: (port: RowPort<Part, Session>) => Asking<T>): Reply<T>;
  /** Makes a session. @throws {SessionError} `SESSION_EXISTS` or `CAPACITY`. Called under `locked`. */
  make(session: NewRowSession<Part>, limits: MakeLimits): Reply<Session>;
}
