/** The target of an erasure: a user or a session. */
export type EraseTarget =
  | { readonly userId: string; readonly sessionId?: never }
  | { readonly sessionId: string; readonly userId?: never };

/** Options of an erasure. */
export interface EraseOptions {
  /**
   * Whether a fork of another user keeps the erased session's words that it begins with, which is reported (default), or loses
   * them too, with the summaries made from them.
   */
  readonly forks?: "keep" | "erase";
  /** Only reports what would be erased. Does not scan deleted sessions of others. */
  readonly dryRun?: boolean;
  /**
   * Afterwards rewrites the store's files, so that no raw file contains the words. It takes long and locks out other processes.
   */
  readonly rewrite?: boolean;
  /** Called after every session. */
  readonly onProgress?: (progress: EraseProgress) => void;
  /** Aborts between two sessions; repeating the erasure continues there. */
  readonly signal?: AbortSignal;
}

/** The progress of an erasure. */
export interface EraseProgress {
  readonly step: "looking" | "erasing" | "rewriting";
  readonly sessionsDone: number;
  /** The number of sessions to erase or clean, as far as it is known. */
  readonly sessionsTotal: number;
}

/** A fork of another user that keeps words of an erased session. */
export interface KeptByFork {
  readonly sessionId: string;
  readonly forkId: string;
  /** The user of the fork; null if it has none, or no longer exists. */
  readonly userId: string | null;
}

/** Data that may still mention the erased user and cannot be erased here. */
export interface NotCovered {
  readonly sessionId: string;
  /**
   * `words-of-others`: others answered in their own words. `snapshot`: the files of a checkpoint could not be freed from this
   * process. `blobs`: images and files could not be removed, because a session that cannot be read may refer to them.
   */
  readonly reason: "words-of-others" | "snapshot" | "blobs";
  /** The number of entries, snapshots, or images and files. */
  readonly count: number;
}

/** The result of an erasure, or of a dry run. */
export interface EraseReport {
  /** The number of purged sessions. */
  readonly sessions: number;
  /** The number of entries in them, and of entries erased in sessions of others. */
  readonly entries: number;
  /** The number of checkpoints in them, and of checkpoints in sessions of others whose metadata was erased. */
  readonly checkpoints: number;
  /** How many of these checkpoints held files. */
  readonly snapshots: number;
  /** The number of images and files that were removed, because nothing refers to them any more. 0 in a dry run. */
  readonly blobs: number;
  readonly keptByForks: readonly KeptByFork[];
  readonly notCovered: readonly NotCovered[];
  /** Why the store's files could not be rewritten, if that was requested; everything else is done. */
  readonly notRewritten?: string;
}
