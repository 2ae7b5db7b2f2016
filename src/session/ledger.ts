/** The spending of a user. */
export interface SpentAmounts {
  readonly totalTokens: number;
  readonly cost: number;
}

/** A bucket of the ledger: what a user had spent, since the ledger began, at the end of an hour. */
export interface LedgerHour extends SpentAmounts {
  /** Hours since 1970. */
  readonly hour: number;
}

/** The current ledger page of a user: a small text that the store does not interpret. */
export interface LedgerPage {
  /** Differs from page to page. */
  readonly stamp: string;
  readonly text: string;
}

/**
 * Records the spending of users: a page for each user, and a bucket for each past hour in which the user spent something.
 *
 * - `replace` compares and writes in one step: of several callers with the same `expected`, one gets true.
 * - With `ended`, the bucket is stored together with the page, or neither is. An existing bucket is not changed.
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
