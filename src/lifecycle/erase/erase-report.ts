/** Who or what is erased. */
export type EraseTarget =
  | { readonly userId: string; readonly sessionId?: never }
  | { readonly sessionId: string; readonly userId?: never };

/** How an erasure is done. */
export interface EraseOptions {
  /**
   * What becomes of words that a fork of someone else begins with: they are kept there and reported (default), or erased
   * there too, with the summaries that were made from them.
   */
  readonly forks?: "keep" | "erase";
  /** Only says what would be erased. It does not look into the trash of others. */
  readonly dryRun?: boolean;
  /** Afterwards writes what the store is kept in anew, so that no raw file has the words. It takes long and locks others out. */
  readonly rewrite?: boolean;
  /** Told after every session. */
  readonly onProgress?: (progress: EraseProgress) => void;
  /** Stops between two sessions; the same erasure again goes on there. */
  readonly signal?: AbortSignal;
}

/** How far an erasure is. */
export interface EraseProgress {
  readonly step: "looking" | "erasing" | "rewriting";
  readonly sessionsDone: number;
  /** How many sessions are to be erased or cleaned, as far as is known. */
  readonly sessionsTotal: number;
}

/** A fork of someone else's that begins with words of an erased session and keeps them. */
export interface KeptByFork {
  readonly sessionId: string;
  readonly forkId: string;
  /** Whose the fork is now; null where it is nobody's, or gone. */
  readonly userId: string | null;
}

/** What may still tell of who was erased, and is not for us to take away. */
export interface NotCovered {
  readonly sessionId: string;
  /** Others answered in their own words, or the files of a checkpoint could not be freed from here. */
  readonly reason: "words-of-others" | "snapshot";
  /** How many entries or snapshots. */
  readonly count: number;
}

/** What an erasure did, or would do. */
export interface EraseReport {
  /** Sessions that were removed for good. */
  readonly sessions: number;
  /** Entries that were removed with them, or taken out of sessions of others. */
  readonly entries: number;
  /** Checkpoints that were removed with them, and those in sessions of others that lost what the user noted with them. */
  readonly checkpoints: number;
  /** How many of the checkpoints held files. */
  readonly snapshots: number;
  readonly keptByForks: readonly KeptByFork[];
  readonly notCovered: readonly NotCovered[];
  /** Why what the store is kept in could not be written anew, where that was asked for; everything else is done. */
  readonly notRewritten?: string;
}
