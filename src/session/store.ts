import type { JsonObject, JsonValue } from "../internal/json.ts";
import type {
  BlobInput,
  BlobRef,
  FindBlob,
  ReadBlobOptions,
  StoredBlob,
  SweepBlobsOptions,
  SweptBlobs,
} from "./blob.ts";
import type { Attachment } from "./message.ts";
import type { Entry, EntryDraft, SessionStatus } from "./log/entry.ts";
import type { PathSummary, SessionHead } from "./log/fold.ts";
import type { SessionHeader } from "./log/header.ts";
import type { LedgerTable } from "./ledger.ts";
import type { RunsCondition } from "./log/open-runs.ts";
import type { Settings } from "./log/settings.ts";
import type { Usage } from "./usage.ts";

/** Conditions of an append, checked in the same transaction. */
export interface Guard {
  /** The session has this status, or one of these. */
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** The active path has at most this many messages afterwards; messages that a started run appends are not refused. */
  readonly maxTurns?: number;
  /** Variables that the append sets, with the system prompt, take at most this many bytes as JSON afterwards. */
  readonly variablesBytesMax?: number;
  /** The session's live lease has this token. */
  readonly leaseToken?: number;
  /** The session has no open run, including runs that wait to start or for an answer. */
  readonly noOpenRun?: true;
  /** This run of the session is open and was not asked to stop. */
  readonly openRun?: string;
  /**
   * The caller takes responsibility for the open runs: it holds the session in another way than by a lease (such as a
   * run with a file of its own), or it has checked that at the expected version the append affects none of them.
   */
  readonly holds?: true;
}

/** Options of an append. */
export interface AppendOptions {
  /** Refuse with a `SessionConflictError` unless the session has this version. */
  readonly expectedVersion?: number;
  /**
   * Append below this entry (null: before the root) instead of below the leaf. The leaf moves along only if it was this
   * entry.
   */
  readonly onto?: string | null;
  /**
   * Append below the leaf if this entry is on the leaf's path, otherwise below this entry. So messages that follow an
   * earlier one are appended at the leaf, unless someone moved the leaf to another branch. Not together with `onto`.
   */
  readonly below?: string | null;
  readonly guard?: Guard;
  /** The user who causes the entries; absent if the program itself does. Not compared when an append is retried. */
  readonly by?: string;
  /**
   * The run that appends the entries and holds the session; `guard` has its lease. Not compared when an append is
   * retried.
   */
  readonly run?: string;
  /** Finds the blobs that the drafts refer to and that the session does not have, such as those of another store. */
  readonly findBlob?: FindBlob;
  /** The drafts are a copy of another log: their `parentId` is kept, and unknown types are accepted. */
  readonly verbatim?: boolean;
}

/** The result of an append: the session's new version and head, and the entry for each draft. */
export interface AppendResult {
  readonly version: number;
  readonly entries: readonly Entry[];
  readonly head: SessionHead;
}

/** The part of a log to read. `after` and `before` are positions, both exclusive. */
export interface ReadOptions {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
  /** Latest first. */
  readonly reverse?: boolean;
  /** Reads the log of a deleted session instead of a live one; the session stays deleted. */
  readonly deleted?: boolean;
}

/** The part of a log to read as JSON texts. */
export interface ReadJsonOptions extends ReadOptions {
  /** Stops after the entry with which the texts exceed this number of characters (default: no limit). */
  readonly charactersMax?: number;
}

/** Selects the sessions to list, count or search. */
export interface SessionQuery {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** Sessions that were forked or otherwise derived from this one. */
  readonly parentId?: string;
  /**
   * Sessions with an open run that waits to start or to continue (`requested`), that a process holds now (`running`),
   * that waits for an answer, parked or not (`asking`), or whose process is gone (`interrupted`). The cost depends on
   * the number of results only.
   */
  readonly runs?: RunsCondition;
  /**
   * Sessions with a run that no process holds and that could continue before this time, or whose question expires by
   * then.
   */
  readonly dueBefore?: string;
  /** Deleted sessions instead of live ones. */
  readonly deleted?: boolean;
  /** At most this many (default 100, at most 1,000). */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
}

/** One page of a listing; `next` is the cursor of the following page, or null. */
export interface SessionPage {
  readonly items: readonly SessionHead[];
  readonly next: string | null;
  /** Sessions that could not be read, with the reason for each. */
  readonly damaged: readonly DamagedSession[];
}

/** A stored session that cannot be read as a whole. */
export interface DamagedSession {
  readonly id: string | null;
  readonly path: string;
  readonly reason: string;
}

/** A session that matches a search, with the first matches. */
export interface SearchHit {
  readonly head: SessionHead;
  readonly matches: readonly SearchMatch[];
}

/** A message that matches, with the text around the first match. */
export interface SearchMatch {
  readonly entryId: string;
  readonly seq: number;
  readonly text: string;
}

/** A position in a session's log that can be returned to. */
export interface Checkpoint {
  readonly id: string;
  readonly sessionId: string;
  readonly version: number;
  readonly leafId: string | null;
  readonly createdAt: string;
  readonly parentCheckpointId: string | null;
  readonly metadata: JsonObject;
  /** The user who made the checkpoint; absent if the program did. */
  readonly by?: string;
  readonly sandboxSnapshot?: JsonValue;
}

/** The holder of a session and the end of its lease. Of two holders, the later one has the larger token. */
export interface LeaseInfo {
  readonly sessionId: string;
  readonly runId: string;
  readonly token: number;
  readonly expiresAt: string;
}

/** A held lease. Disposing releases it. */
export interface Lease extends LeaseInfo, AsyncDisposable {
  /** Extends the lease to `ttlMs` from now. @throws {LeaseLostError} if another holder took it over. */
  renew(ttlMs?: number): Promise<void>;
  /** Releases the lease; does nothing if it is already lost. */
  release(): Promise<void>;
}

/**
 * A query for sums over the messages that each session appended itself. Messages that a fork inherited count in its
 * source; merged messages count in the session where they were first appended.
 */
export interface AggregateQuery {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** Messages from this time on (inclusive). */
  readonly from?: string;
  /** Messages before this time (exclusive). */
  readonly to?: string;
  /** One row for each combination that occurs; an empty list gives a single row. */
  readonly groupBy: readonly AggregateKey[];
}

/** What aggregate rows can be grouped by; a day is a UTC date, a model is `provider/model`. */
export type AggregateKey = "day" | "model" | "user";

/** One sum. A message without a model, or a session without a user, counts under null. */
export interface AggregateRow {
  readonly day?: string;
  readonly model?: string | null;
  readonly user?: string | null;
  readonly sessions: number;
  readonly messages: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  readonly cost: number;
  /** The sums of imported messages, which are in none of the other fields; absent if there are none. */
  readonly imported?: ImportedSums;
}

/** The sums of imported messages, except those imported without counting. */
export interface ImportedSums {
  readonly messages: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** The cost that the original programs recorded. */
  readonly cost: number;
  /** Usage without a recorded cost, by `provider/model`; null if no model is named. */
  readonly uncosted: readonly { readonly model: string | null; readonly usage: Usage }[];
}

/** The capabilities of a store. */
export interface StoreCapabilities {
  /** Sessions survive the process. */
  readonly durable: boolean;
  /** Several processes can use the same sessions at the same time. */
  readonly shared: boolean;
  /** The cost of a fork does not depend on the length of the source. */
  readonly forkByReference: boolean;
  readonly search: "index" | "scan";
  readonly watch: "push" | "poll";
  readonly lease: "shared" | "process";
  /** Whether it records the spending of users, which budgets need. */
  readonly ledger?: boolean;
  /** Whether the data of images and files is kept beside the logs; `createStore` sets it. */
  readonly blobs?: boolean;
  /** The file or directory of this machine in which the store keeps its data, if there is one. */
  readonly path?: string;
}

/**
 * Stores the logs of many sessions. Logs are append-only.
 *
 * Every store keeps these promises; `skein/testing` checks each of them:
 * - An append is atomic, even if the process dies during it.
 * - Once `append` resolves, every reader sees its entries, in this process and, if the store is `shared`, in other
 *   processes.
 * - Concurrent appends are all stored, in one order; `seq` counts from 0 without a gap.
 * - Appends are idempotent: repeating one with the same ids writes nothing and returns the stored entries.
 * - While a run is open, only its holder can append tool results, answers with calls, compactions and prunes. An append comes from the
 *   holder if its guard has the live lease's token or `holds`; other appends get `SESSION_BUSY`. A
 *   verbatim copy is not checked.
 * - The head is always the fold of the entries, except for `updatedAt`, which comes from the store's clock.
 * - A refused call throws a `SessionError` and changes nothing.
 * - The cost of an append, of `head` and of `getEntry` does not depend on the length of the log.
 * - After `close`, every method rejects with `STORE_CLOSED`.
 */
export interface SessionStore extends AsyncDisposable {
  readonly capabilities: StoreCapabilities;
  /** Creates a session. `entries` become its first ones; they keep their ids, times and parents. */
  create(header: SessionHeader, options?: CreateOptions): Promise<SessionHead>;
  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult>;
  /** Returns the folded state of a session's log, or null if the session does not exist. */
  head(sessionId: string): Promise<SessionHead | null>;
  /** Returns the heads of several sessions, in order; cheaper than separate calls of `head`. */
  heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]>;
  /** Yields the entries of a log; none if the session does not exist. */
  read(sessionId: string, options?: ReadOptions): AsyncIterable<Entry>;
  /** The same entries as `read`, each as JSON text, for callers that pass them on; at most 1,001 (default 100). */
  readJson(sessionId: string, options?: ReadJsonOptions): Promise<readonly string[]>;
  getEntry(sessionId: string, entryId: string): Promise<Entry | null>;
  /**
   * The bytes of an image or a file of a session, by its part of a message or the name of its blob; null if the session has no
   * such blob. The bytes are read only when `bytes` or `stream` is called.
   */
  blob(sessionId: string, part: string | Attachment | BlobRef, options?: ReadBlobOptions): Promise<StoredBlob | null>;
  /**
   * Stores bytes that entries of the session can then refer to, as `{ type, mediaType, blob, bytes }`. Blobs that no entry refers to are
   * removed after a day.
   *
   * @throws {SessionError} `TOO_LARGE`, `BLOBS_QUOTA_EXCEEDED`, or `NOT_SUPPORTED` by a store that keeps no blobs.
   */
  putBlob(sessionId: string, bytes: BlobInput): Promise<BlobRef>;
  /** Removes the blobs that no entry refers to and that were not stored or used within a day. Reads the logs of all sessions. */
  sweepBlobs(options?: SweepBlobsOptions): Promise<SweptBlobs>;
  /** Returns the summary of the path that ends at a node; null for a fact or an unknown entry. */
  path(sessionId: string, entryId: string): Promise<PathSummary | null>;
  /** Reads all settings of a path. The cost depends on the number of settings, not on how often they were changed. */
  settings(sessionId: string, path: PathSummary): Promise<Settings>;
  /**
   * Creates a session whose log is a copy of the source's up to and including `at` (default: all of it; null: nothing),
   * with the leaf that the source had at that point. Later changes to one do not affect the other.
   */
  fork(sourceId: string, header: SessionHeader, options?: ForkOptions): Promise<SessionHead>;
  /** Lists sessions, newest first, by the time of the last message. */
  list(query?: SessionQuery): Promise<SessionPage>;
  count(query?: SessionQuery): Promise<number>;
  /**
   * Finds the sessions that contain all terms: words, `"exact phrases"`, `re:<regex>`. Newest first. The content of deleted
   * sessions cannot be read, so with `deleted: true` only ids, names and directories are searched.
   */
  search(text: string, query?: SessionQuery): Promise<SearchHit[]>;
  /**
   * Deletes a session; false if it does not exist. It can be restored until it is purged; its forks are not affected.
   */
  delete(sessionId: string): Promise<boolean>;
  /** Restores a deleted session; false if there is none with this id. */
  undelete(sessionId: string, options?: UndeleteOptions): Promise<boolean>;
  /**
   * Permanently removes sessions that were deleted before a time, or those of a query, except the parts that a fork
   * still uses. Returns the number of sessions.
   */
  purge(which: string | PurgeQuery): Promise<number>;
  saveCheckpoint(checkpoint: Checkpoint): Promise<void>;
  loadCheckpoint(id: string): Promise<Checkpoint | null>;
  /** Lists checkpoints, oldest first. With `deleted`, those of a deleted session instead of a live one. */
  listCheckpoints(sessionId: string, options?: { readonly deleted?: boolean }): Promise<Checkpoint[]>;
  deleteCheckpoint(id: string): Promise<boolean>;
  /**
   * Active and suspended sessions whose `updatedAt` is before that time, least recent first. A session with a run that
   * waits to start or for an answer is not idle.
   */
  listExpired(before: string, limit: number): Promise<SessionHead[]>;
  /** Yields entries after the position `after` (default: from now on) as they are appended, until the signal aborts. */
  watch(sessionId: string, options?: WatchOptions): AsyncIterable<Entry>;
  /**
   * Acquires the lease. @throws {SessionBusyError} while anyone holds it, even under the same `runId`: only one of two
   * claimants gets the run.
   */
  lease(sessionId: string, runId: string, ttlMs: number): Promise<Lease>;
  /** The live lease of a session, or null. */
  leaseOf(sessionId: string): Promise<LeaseInfo | null>;
  aggregate(query: AggregateQuery): Promise<AggregateRow[]>;
  /**
   * The operations for erasing, used by `SessionManager.erase` only. @throws {SessionError} `NOT_SUPPORTED` if the
   * driver has none.
   */
  readonly eraser: StoreEraser;
  /** The spending of users, for budgets. @throws {SessionError} `NOT_SUPPORTED` if the driver has no ledger. */
  readonly ledger: LedgerTable;
  /** Resolves if the store is reachable. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Selects the deleted sessions to remove permanently. */
export interface PurgeQuery {
  /** Only sessions deleted before this time (default: at any time). */
  readonly before?: string;
  readonly sessionId?: string;
  readonly userId?: string;
}

/**
 * The operations of a store that change or remove stored data. Only erasing uses them: any other use breaks the
 * append-only guarantee on which readers rely.
 */
export interface StoreEraser {
  /**
   * Atomically replaces the log of a live session that has `version` entries. The new `entries` keep the positions,
   * ids, parents and times of the old. Checkpoints, times and forks are kept; the lease is removed. False if the
   * session has another version.
   */
  replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean>;
  /** Overwrites a checkpoint of a live session; false if there is none with this id. */
  replaceCheckpoint(checkpoint: Checkpoint): Promise<boolean>;
  /**
   * The sessions, including deleted ones, with an entry or a checkpoint that a user caused. Without it, all sessions
   * are read.
   */
  authored?(userId: string): AsyncIterable<readonly string[]>;
  /**
   * The sessions, including deleted ones, that were derived from these or start with their entries, as pairs. Needed if
   * a session in between can be purged and leave its entries to its forks.
   */
  heirs?(sessionIds: readonly string[]): Promise<readonly (readonly [sessionId: string, heirId: string])[]>;
  /** Permanently removes sessions, deleted or not, atomically. Without it, each is deleted and purged. */
  remove?(sessionIds: readonly string[]): Promise<void>;
  /**
   * Reads small persistent values that are stored beside the sessions, by key; missing ones are left out. Without keys,
   * all of them.
   */
  readMarks(keys?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Writes such values, and removes those that are null, atomically. */
  writeMarks(marks: ReadonlyMap<string, string | null>): Promise<void>;
  /** Describes leftovers of removals that nothing refers to, one sentence each; for `skein doctor`. */
  leftovers?(): Promise<readonly string[]>;
  /** Removes samples of the contents that the database keeps for itself, such as column statistics. */
  readonly clearStatistics?: (() => Promise<void>) | undefined;
  /**
   * Rewrites the underlying files or tables, so that no removed data is left on their pages.
   *
   * @throws {SessionError} if that is not possible; no stored data is lost.
   */
  rewrite?(): Promise<void>;
}

/** Options for creating a session. */
export interface CreateOptions {
  readonly entries?: readonly EntryDraft[];
  /** Finds the blobs that the entries refer to, such as those of another store. */
  readonly findBlob?: FindBlob;
  /** Refuse entries whose variables exceed this number of bytes as JSON, like the guard of an append. */
  readonly variablesBytesMax?: number;
  /** Refuse with a `SessionCapacityError` when the header's user already has this many active or suspended sessions. */
  readonly maxOpenPerUser?: number;
}

/** Options for restoring a session. */
export interface UndeleteOptions {
  /**
   * Refuse with a `SessionCapacityError` when the session is active or suspended and its user already has this many such
   * sessions.
   */
  readonly maxOpenPerUser?: number;
}

/** Options for a fork. */
export interface ForkOptions {
  readonly at?: string | null;
  /** Refuse with a `SessionCapacityError` when the source already has this many forks. */
  readonly maxForks?: number;
  /**
   * Refuse with a `SessionCapacityError` when the header's user already has this many active or suspended sessions,
   * whatever the status of the fork.
   */
  readonly maxOpenPerUser?: number;
}

/** What to watch, and for how long. */
export interface WatchOptions {
  readonly after?: number;
  readonly signal?: AbortSignal;
}
