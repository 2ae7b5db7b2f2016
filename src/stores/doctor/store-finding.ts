/**
 * What can be wrong with a stored session.
 *
 * - `unreadable`: it cannot be read at all, or not to its end.
 * - `seq`, `duplicate`, `parent`, `target`: its log has a gap, an id twice, or names an entry that does not come before.
 * - `head`, `path`, `entry`: what the store keeps beside the log, or finds by id, is not what the log says.
 * - `checkpoint`: one of its checkpoints is at a position that the log does not have.
 * - `fork`: it does not begin with the entries of the session that it was forked from.
 * - `listing`, `count`, `idle`, `search`: an index misses it, or holds what is not there.
 * - `leftover`: there is something that nothing refers to.
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

/** One thing that is wrong in a store; `sessionId` is null where no single session can be named. */
export interface StoreFinding {
  readonly sessionId: string | null;
  readonly kind: FindingKind;
  /** One sentence. */
  readonly message: string;
}

/** Takes a finding. */
export type ReportFinding = (sessionId: string | null, kind: FindingKind, message: string) => void;
