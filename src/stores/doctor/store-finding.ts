/**
 * The kinds of problems in a store.
 *
 * - `unreadable`: the session cannot be read, or not to its end.
 * - `seq`, `duplicate`, `parent`, `target`: the log has a gap, a duplicate id, or a reference to an entry that does not come
 *   before.
 * - `head`, `path`, `entry`: a stored head or path summary, or an entry found by its id, differs from the log.
 * - `checkpoint`: a checkpoint is at a position that the log does not have.
 * - `fork`: the session does not begin with the entries of its fork source.
 * - `listing`, `count`, `idle`, `search`: the session is missing in an index, or an index contains it wrongly.
 * - `leftover`: stored data that nothing refers to.
 */
export type FindingKind =
  | "unreadable"
  | "seq"
  | "duplicate"
  | "parent"
  | "target"
  | "head"
  | "path"
  | "entry"
  | "checkpoint"
  | "fork"
  | "listing"
  | "count"
  | "idle"
  | "search"
  | "leftover";

/** One problem in a store. `sessionId` is null if it does not concern a single session. */
export interface StoreFinding {
  readonly sessionId: string | null;
  readonly kind: FindingKind;
  /** One sentence. */
  readonly message: string;
}

/** Receives a finding. */
export type ReportFinding = (sessionId: string | null, kind: FindingKind, message: string) => void;
