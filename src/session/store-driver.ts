import type { BlobStore } from "./blob.ts";
import type { CheckedDraft } from "./log/draft.ts";
import type { StoredEntry } from "./log/append-plan.ts";
import type { Entry } from "./log/entry.ts";
import type { SessionHead } from "./log/fold.ts";
import type { SessionHeader } from "./log/header.ts";
import type {
  AppendOptions,
  AppendResult,
  Checkpoint,
  DamagedSession,
  ForkOptions,
  PurgeQuery,
  SearchHit,
  SessionQuery,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
} from "./store.ts";
import type { LedgerTable } from "./ledger.ts";
import type { SearchTerm } from "./search.ts";
import type { Settings, SettingsNode } from "./log/settings.ts";

/** The part of a log to read: positions strictly between `after` and `before`, at most `limit` of them. */
export interface ReadRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
  readonly reverse: boolean;
  /** Reads a deleted session instead of a live one. */
  readonly deleted?: boolean;
}

/** Selects the deleted sessions that a driver removes permanently. */
export interface DriverPurge extends PurgeQuery {
  readonly before: string;
}

/**
 * The interface that the author of a store implements; `createStore(driver)` turns it into a `SessionStore`.
 *
 * `createStore` checks every argument before it calls the driver, calls nothing after `close`, and implements the
 * optional methods if they are absent. Obligations of the driver:
 * - `append` plans with `planAppend` on the current head and writes the plan's entries and head in one transaction.
 * - Ids are compared exactly, and no id can collide with the driver's own keys, not even `__proto__`.
 * - A missing or deleted session is null, empty or false in readers, a `SessionNotFoundError` in writers.
 */
export interface StoreDriver {
  readonly capabilities: StoreCapabilities;
  /** True if an append is complete when the call returns. Watchers are then notified synchronously. */
  readonly appendsAtOnce?: true;
  /** `SESSION_EXISTS` if the id is in use, even by a deleted session. Drafts are stored verbatim. */
  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead>;
  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult>;
  head(sessionId: string): Promise<SessionHead | null>;
  /** The heads of several sessions, in order; implement it if it is cheaper than separate calls of `head`. */
  heads?(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]>;
  read(sessionId: string, range: ReadRange): AsyncIterable<Entry>;
  /**
   * The same entries as JSON texts, if the driver stores them in that form. Without it, entries are serialized again.
   */
  readTexts?(sessionId: string, range: ReadRange): AsyncIterable<string>;
  /** Finds an entry by id, with the summary of its path. */
  find(sessionId: string, entryId: string): Promise<StoredEntry | null>;
  /** Reads all settings of a path that ends with this node; `readSettings` follows the nodes by position. */
  settings(sessionId: string, last: SettingsNode): Promise<Settings>;
  /**
   * Creates the header with `forkedHeader`, which sets the position of the fork. An unknown `at` is an
   * `UnknownEntryError`.
   */
  fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead>;
  readonly listing: SessionListing;
  delete(sessionId: string): Promise<boolean>;
  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean>;
  purge(which: DriverPurge): Promise<number>;
  readonly checkpoints: CheckpointTable;
  ping(): Promise<void>;
  close(): Promise<void>;
  /**
   * Searches for sessions that contain all parsed terms. Without this method, every session of the query is read.
   */
  search?(terms: readonly SearchTerm[], query: SessionQuery): Promise<SearchHit[]>;
  /**
   * Calls `wake` whenever the session may have changed or been deleted, also by another process, until the subscription
   * is closed. Resolves when no later append can be missed. Extra calls are harmless. Without it, watchers of a shared
   * store poll.
   */
  subscribe?(sessionId: string, wake: () => void): Promise<Subscription>;
  /** Stores the data of images and files. Without it, and without the option `blobs`, the data stays in entries. */
  readonly blobs?: BlobStore;
  /** Without it, the store cannot erase. */
  readonly eraser?: StoreEraser;
  /** Without it, a manager with budgets refuses the store. */
  readonly ledger?: LedgerTable;
  /**
   * The leases, against which `append` checks `guard.leaseToken`. `ProcessLeases` works among the callers of one
   * driver.
   */
  readonly leases: LeaseTable;
}

/** A watcher's subscription to a session; notifications stop when it is closed. */
export interface Subscription {
  close(): void;
}

/** Lists sessions. */
export interface SessionListing {
  /** Whether each call reads every session, so that one call for a whole page is better than several. */
  readonly scans?: boolean;
  /**
   * `after` is the last item of the previous page: its `modifiedAt` and id. Order: `modifiedAt`, then id, both
   * descending.
   */
  list(query: SessionQuery, limit: number, after: ListPosition | null): MaybePromise<SessionHead[]>;
  count(query: SessionQuery): MaybePromise<number>;
  /** Open sessions that were last appended to before a time, the longest idle first. */
  idleSince(before: string, limit: number): MaybePromise<SessionHead[]>;
  /** Unreadable sessions, live or deleted. Without it, none is reported. */
  damaged?(deleted: boolean): MaybePromise<readonly DamagedSession[]>;
}

/** A value, or a promise of it: SQLite is synchronous, a database server is not. */
export type MaybePromise<T> = T | Promise<T>;

/** Stores checkpoints; those of a deleted session are hidden with it. */
export interface CheckpointTable {
  /** Never overwrites: an existing id with other content is `CHECKPOINT_EXISTS`, with the same content a no-op. */
  save(checkpoint: Checkpoint): Promise<void>;
  load(id: string): Promise<Checkpoint | null>;
  /** The checkpoints of a session, live or deleted: oldest first, ties in the order in which they were saved. */
  list(sessionId: string, deleted: boolean): Promise<Checkpoint[]>;
  delete(id: string): Promise<boolean>;
}

/** Grants at most one live lease for each session; tokens only increase. */
export interface LeaseTable {
  /** @throws {SessionBusyError} while a lease is live, whichever run holds it. */
  acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease>;
  /** Returns the new end of the lease, or null if the token is not the live one. */
  renew(sessionId: string, token: number, ttlMs: number): Promise<number | null>;
  release(sessionId: string, token: number): Promise<void>;
  current(sessionId: string): Promise<StoredLease | null>;
}

/** A lease as a driver stores it. */
export interface StoredLease {
  readonly runId: string;
  readonly token: number;
  /** When it ends, in milliseconds since 1970. */
  readonly untilMs: number;
}

/** The position in a listing at which a page ended. */
export interface ListPosition {
  readonly modifiedAt: string;
  readonly id: string;
}
