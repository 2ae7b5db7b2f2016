import type { CheckedDraft } from "./log/draft.ts";
import type { Entry } from "./log/entry.ts";
import type { PathSummary, SessionHead } from "./log/fold.ts";
import type { SessionHeader } from "./log/header.ts";
import type {
  AggregateQuery,
  AggregateRow,
  AppendOptions,
  AppendResult,
  Checkpoint,
  ForkOptions,
  LeaseInfo,
  PurgeQuery,
  SearchHit,
  SessionPage,
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

/** A query as a driver gets it. */
export interface DriverQuery extends SessionQuery {
  /** Whether someone has a session now; only given to a driver that keeps no leases itself. */
  readonly isHeld?: (sessionId: string) => boolean;
}

/** Which deleted sessions a driver removes for good. */
export interface DriverPurge extends PurgeQuery {
  readonly before: string;
}

/** Where a fork ends in its source's log, and how many there may be. */
export interface DriverForkOptions extends Omit<ForkOptions, "at"> {
  readonly at: string | null | undefined;
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
  /** The same as texts, where the driver holds them so; else entries are written as JSON again. */
  readJson?(sessionId: string, range: ReadRange, charactersMax: number): Promise<readonly string[]>;
  getEntry(sessionId: string, entryId: string): Promise<Entry | null>;
  path(sessionId: string, entryId: string): Promise<PathSummary | null>;
  /** All that was set on a path that ends in these settings; `readSettings` follows them from one position to the next. */
  settings(sessionId: string, last: SettingsNode): Promise<Settings>;
  /** Makes the header with `forkedHeader`, which says where the fork begins. An unknown `at` is an `UnknownEntryError`. */
  fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead>;
  /** `after` is the last item of the page before: its `modifiedAt` and id. Order: `modifiedAt`, then id, both descending. */
  list(query: DriverQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">>;
  count(query: DriverQuery): Promise<number>;
  delete(sessionId: string): Promise<boolean>;
  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean>;
  purge(which: DriverPurge): Promise<number>;
  /** Replaces nothing: the same id with other content is `CHECKPOINT_EXISTS`, with the same content a no-op. */
  saveCheckpoint(checkpoint: Checkpoint): Promise<void>;
  loadCheckpoint(id: string): Promise<Checkpoint | null>;
  listCheckpoints(sessionId: string): Promise<Checkpoint[]>;
  deleteCheckpoint(id: string): Promise<boolean>;
  listExpired(before: string, limit: number): Promise<SessionHead[]>;
  ping(): Promise<void>;
  close(): Promise<void>;
  /** Without it, every session of the query is read through. The terms are parsed, and must all be found. */
  search?(terms: readonly SearchTerm[], query: DriverQuery): Promise<SearchHit[]>;
  /** Without it, every session of the query is read through. */
  aggregate?(query: AggregateQuery): Promise<AggregateRow[]>;
  /**
   * Calls `wake` whenever the session may have grown or gone, also by another process, until it is closed; resolves once
   * no later append can be missed. Waking too often does no harm. Without it, watchers of a shared store look again and again.
   */
  subscribe?(sessionId: string, wake: () => void): Promise<Subscription>;
  /** Without it, nothing can be erased. */
  readonly eraser?: StoreEraser;
  /** Without it, leases hold among the callers of one store object. With it, `append` checks `guard.leaseToken` itself. */
  readonly leases?: LeaseTable;
}

/** What a watcher is told of a session, until it is closed. */
export interface Subscription {
  close(): void;
}

/** Keeps at most one live lease a session; tokens only grow. */
export interface LeaseTable {
  /** @throws {SessionBusyError} while a lease is live, whatever run it was taken for. */
  acquire(sessionId: string, runId: string, ttlMs: number): Promise<LeaseInfo>;
  /** The new expiry, or null when the token is not the live one. */
  renew(sessionId: string, token: number, ttlMs: number): Promise<string | null>;
  release(sessionId: string, token: number): Promise<void>;
  current(sessionId: string): Promise<LeaseInfo | null>;
}

/** Where in a listing a page ended. */
export interface ListPosition {
  readonly modifiedAt: string;
  readonly id: string;
}
