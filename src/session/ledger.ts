/** What a user has spent. */
export interface SpentAmounts {
  readonly totalTokens: number;
  readonly cost: number;
}

/** A bucket of the ledger: what a user had spent, since the ledger began, at the end of an hour. */
export interface LedgerHour extends SpentAmounts {
  /** Hours since 1970. */
  readonly hour: number;
}

/** What a store holds about the spending of a user at present: a small text, whose content is not the store's business. */
export interface LedgerPage {
  /** Differs from page to page. */
  readonly stamp: string;
  readonly text: string;
}

/**
 * Keeps what users spend: a page for each user, and a bucket for each hour that is over and in which the user spent something.
 *
 * - `replace` compares and writes in one step: of several callers with the same `expected`, one gets true.
 * - With `ended`, the bucket is stored together with the page, or neither is. A bucket that is there already stays as it is.
 * - Deleting or purging a session does not touch the ledger. User ids are compared exactly.
 */
export interface LedgerTable {
  read(userId: string): Promise<LedgerPage | null>;
  /** Writes a page if the stored one has the stamp `expected`, or if there is none and `expected` is null; else false. */
  replace(userId: string, expected: string | null, page: LedgerPage, ended: LedgerHour | null): Promise<boolean>;
  /** The last bucket of an hour before this one; null if there is none. */
  hourBefore(userId: string, hour: number): Promise<LedgerHour | null>;
  /** Removes the page and all buckets of a user. */
  erase(userId: string): Promise<void>;
}
