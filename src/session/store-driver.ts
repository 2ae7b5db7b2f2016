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
import type { SearchTerm } from "./search.ts";
import type { Settings, SettingsNode } from "./log/settings.ts";

/** Which part of a log to read: positions strictly between `after` and `before`, at most `limit` of them. */
export interface ReadRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
  readonly reverse: boolean;
  /** Of a deleted session instead of a live one. */
  readonly deleted?: boolean;
}

/** Which deleted sessions a driver removes for good. */
export interface DriverPurge extends PurgeQuery {
  readonly before: string;
}

/**
 * What someone who adds a store writes; `createStore(driver)` makes a `SessionStore` of it.
 *
 * `createStore` has checked every argument before a driver sees it, calls nothing after `close`, and brings what is
 * optional here. What is left to the driver:
 * - `append` plans with `planAppend` on the current head and writes the plan's entries and head in one transaction.
 * - Ids are compared exactly, and no id can collide with the driver's own keys, not even `__proto__`.
 * - A missing or deleted session is null, empty or false in readers, a `SessionNotFoundError` in writers.
 */
export interface StoreDriver {
  readonly capabilities: StoreCapabilities;
  /** Whether an append is done by the time the call of it returns, so that those who watch can be told without waiting. */
  readonly appendsAtOnce?: true;
  /** `SESSION_EXISTS` when the id is taken, also by a deleted session. Drafts are verbatim. */
  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead>;
  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult>;
  head(sessionId: string): Promise<SessionHead | null>;
  /** Those of several sessions, in their order, where that costs less than as many calls of `head`. */
  heads?(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]>;
  read(sessionId: string, range: ReadRange): AsyncIterable<Entry>;
  /** The same as JSON, where the driver holds them so; else entries are written as JSON again. */
  readTexts?(sessionId: string, range: ReadRange): AsyncIterable<string>;
  /** An entry by its id, with its path. */
  find(sessionId: string, entryId: string): Promise<StoredEntry | null>;
  /** All that was set on a path that ends in these settings; `readSettings` follows them from one position to the next. */
  settings(sessionId: string, last: SettingsNode): Promise<Settings>;
  /** Makes the header with `forkedHeader`, which says where the fork begins. An unknown `at` is an `UnknownEntryError`. */
  fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead>;
  readonly listing: SessionListing;
  delete(sessionId: string): Promise<boolean>;
  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean>;
  purge(which: DriverPurge): Promise<number>;
  readonly checkpoints: CheckpointTable;
  ping(): Promise<void>;
  close(): Promise<void>;
  /** Without it, every session of the query is read through. The terms are parsed, and must all be found. */
  search?(terms: readonly SearchTerm[], query: SessionQuery): Promise<SearchHit[]>;
  /**
   * Calls `wake` whenever the session may have grown or gone, also by another process, until it is closed; resolves once
   * no later append can be missed. Waking too often does no harm. Without it, watchers of a shared store look again and again.
   */
  subscribe?(sessionId: string, wake: () => void): Promise<Subscription>;
  /** Without it, nothing can be erased. */
  readonly eraser?: StoreEraser;
  /** `append` checks `guard.leaseToken` against it. `ProcessLeases` hold among the callers of one driver. */
  readonly leases: LeaseTable;
}

/** What a watcher is told of a session, until it is closed. */
export interface Subscription {
  close(): void;
}

/** Which sessions there are. */
export interface SessionListing {
  /** Whether each call looks at every session, so that one call for a page is better than several. */
  readonly scans?: boolean;
  /** `after` is the last item of the page before: its `modifiedAt` and id. Order: `modifiedAt`, then id, both descending. */
  list(query: SessionQuery, limit: number, after: ListPosition | null): Reply<SessionHead[]>;
  count(query: SessionQuery): Reply<number>;
  /** Open sessions that were last appended to before a time, the longest idle first. */
  idleSince(before: string, limit: number): Reply<SessionHead[]>;
  /** What cannot be read, live or deleted; without it, that is nothing. */
  damaged?(deleted: boolean): Reply<readonly DamagedSession[]>;
}

/** An answer that comes at once or later. */
type Reply<T> = T | Promise<T>;

/** Keeps checkpoints; those of a deleted session are hidden with it. */
export interface CheckpointTable {
  /** Replaces nothing: the same id with other content is `CHECKPOINT_EXISTS`, with the same content a no-op. */
  save(checkpoint: Checkpoint): Promise<void>;
  load(id: string): Promise<Checkpoint | null>;
  /** Those of a session, live or deleted, the oldest first, equal times in the order they were saved in. */
  list(sessionId: string, deleted: boolean): Promise<Checkpoint[]>;
  delete(id: string): Promise<boolean>;
}

/** Keeps at most one live lease a session; tokens only grow. */
export interface LeaseTable {
  /** @throws {SessionBusyError} while a lease is live, whatever run it was taken for. */
  acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease>;
  /** When it ends now, or null when the token is not the live one. */
  renew(sessionId: string, token: number, ttlMs: number): Promise<number | null>;
  release(sessionId: string, token: number): Promise<void>;
  current(sessionId: string): Promise<StoredLease | null>;
}

/** A lease as a driver keeps it. */
export interface StoredLease {
  readonly runId: string;
  readonly token: number;
  /** When it ends, in milliseconds since 1970. */
  readonly untilMs: number;
}

/** Where in a listing a page ended. */
export interface ListPosition {
  readonly modifiedAt: string;
  readonly id: string;
}
