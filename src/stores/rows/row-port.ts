import type { SessionError } from "../../session/errors.ts";
import type { Asking, Reply } from "./asking.ts";
import type { EncodedPlan } from "./encode-plan.ts";
import type { HeadPlace } from "./entry-state.ts";
import type { LogRange } from "./segments.ts";

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

/** How many sessions there may be when one more has been made. */
export interface MakeLimits {
  readonly maxOpenPerUser?: number | undefined;
  readonly maxForks?: number | undefined;
}

/**
 * What a store that keeps logs as rows brings to the row engine. It looks up and writes; what an append, a read, a fork
 * and a creation are, the engine says. Every answer may come at once or later.
 */
export interface RowPort<Part extends LogRange, Session extends RowSession<Part>> {
  /** Whether `commit` can refuse rows whose ids the session itself has, so that nobody has to look before. */
  readonly checksIds: boolean;
  /**
   * A live session, or a deleted one, as it stands now, or null; what is known of it may be taken over. Under `locked`, it
   * stays so.
   */
  load(sessionId: string, known: Session | undefined, deleted?: boolean): Reply<Session | null>;
  /** The row at a position of the log that a part belongs to. */
  rowAt(part: Part, seq: number): Reply<StateRow | undefined>;
  /** Rows of a session by their ids, as far as it was loaded; those that it does not have are left out. */
  findRows(session: Session, ids: readonly string[]): Reply<readonly StoredRow[]>;
  /** The first or, in reverse, the last entries of a part, as JSON. */
  page(part: Part, count: number, reverse: boolean): Reply<readonly string[]>;
  /** The token of the session's live lease, or null. */
  leaseToken(session: Session): Reply<number | null>;
  /**
   * Writes rows, head and what listings show of it, all or nothing. The session as it is then; or `behind`, when it is not
   * as it was planned on or a condition does not hold; or `unsure`, when in addition an earlier try may have been written.
   */
  commit(session: Session, plan: EncodedPlan, conditions: CommitConditions): Reply<Session | "behind" | "unsure">;
  /** Runs steps on a port where, if the store can, nothing comes in between. They may be run several times. */
  locked<T>(steps: (port: RowPort<Part, Session>) => Asking<T>): Reply<T>;
  /** Makes a session. @throws {SessionError} `SESSION_EXISTS` or `CAPACITY`. Called under `locked`. */
  make(session: NewRowSession<Part>, limits: MakeLimits): Reply<Session>;
  /** The error for a row that is not there, as it was purged under its reader or the store is damaged. */
  missing(seq: number): SessionError;
}
