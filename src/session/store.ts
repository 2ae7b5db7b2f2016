import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { Entry, EntryDraft, SessionStatus } from "./log/entry.ts";
import type { PathSummary, SessionHead } from "./log/fold.ts";
import type { SessionHeader } from "./log/header.ts";
import type { RunsWord } from "./log/open-runs.ts";
import type { Settings } from "./log/settings.ts";
import type { Usage } from "./usage.ts";

/** What must hold, in the same transaction, for an append to be written. */
export interface Guard {
  /** The session has this status, or one of these. */
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** The active path has at most this many messages afterwards. */
  readonly maxTurns?: number;
  /** Variables that the append sets, with the system prompt, take at most this many bytes as JSON afterwards. */
  readonly variablesBytesMax?: number;
  /** The session's live lease has this token. */
  readonly leaseToken?: number;
  /** No run of the session is open, those that wait to begin or for an answer included. */
  readonly noOpenRun?: true;
  /** This run of the session is open, and nobody has told it to stop. */
  readonly openRun?: string;
  /**
   * The caller answers for the open runs: it has the session to itself in another way than by a lease, as a run that has a
   * file of its own, or has looked that at the expected version none of them is touched.
   */
  readonly holds?: true;
}

/** How an append is to be done. */
export interface AppendOptions {
  /** Refuse with a `SessionConflictError` unless the session is at this version. */
  readonly expectedVersion?: number;
  /** Chain on this entry (null: before the root) instead of the leaf; the leaf follows only if it stood there. */
  readonly onto?: string | null;
  /**
   * Chain on the leaf where this entry is on the leaf's path, else on this entry: rows that follow an earlier one go where
   * the session is, unless someone moved the leaf elsewhere. Not together with `onto`.
   */
  readonly below?: string | null;
  readonly guard?: Guard;
  /** The user who causes the entries; left out, it is the program itself. Not compared when an append is retried. */
  readonly by?: string;
  /** The run that appends the entries, which holds the session: `guard` has its lease. Not compared when an append is retried. */
  readonly run?: string;
  /** The drafts are a copy of another log: their `parentId` is kept, and so are types this version does not know. */
  readonly verbatim?: boolean;
}

/** What an append did: the session's version and head after it, and the entry of each draft. */
export interface AppendResult {
  readonly version: number;
  readonly entries: readonly Entry[];
  readonly head: SessionHead;
}

/** Which part of a log to read. `after` and `before` are positions, both exclusive. */
export interface ReadOptions {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
  /** Latest first. */
  readonly reverse?: boolean;
  /** A deleted session's log instead of a live one's; the session stays in the trash. */
  readonly deleted?: boolean;
}

/** Which part of a log to read as texts. */
export interface ReadJsonOptions extends ReadOptions {
  /** Ends after the entry with which the texts take more than so many characters (default: any number). */
  readonly charactersMax?: number;
}

/** Which sessions to list, count or search. */
export interface SessionQuery {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** Sessions that were forked or otherwise derived from this one. */
  readonly parentId?: string;
  /**
   * Sessions with an open run that waits to begin or to go on (`requested`), that someone has now (`running`), that waits
   * for an answer, parked or not (`asking`), or whose process is gone (`interrupted`). Costs what it finds.
   */
  readonly runs?: RunsWord;
  /** Sessions with a run that nobody has and that could go on before this time, or whose question has expired by then. */
  readonly dueBefore?: string;
  /** Deleted sessions instead of live ones. */
  readonly deleted?: boolean;
  /** At most this many (default 100, at most 1,000). */
  readonly limit?: number;
  /** Where the page before ended: its `next`. */
  readonly cursor?: string;
}

/** One page of a listing; `next` is the cursor of the following page, or null. */
export interface SessionPage {
  readonly items: readonly SessionHead[];
  readonly next: string | null;
  /** Sessions that could not be read, with the reason. */
  readonly damaged: readonly DamagedSession[];
}

/** A stored session that cannot be read as it is. */
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

/** One message that matches, with the text around the first match. */
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
  /** The user who made it; left out where the program did. */
  readonly by?: string;
  readonly sandboxSnapshot?: JsonValue;
}

/** Who runs a session, until when. Of two holders, the later one has the larger token. */
export interface LeaseInfo {
  readonly sessionId: string;
  readonly runId: string;
  readonly token: number;
  readonly expiresAt: string;
}

/** A held lease. Disposing releases it. */
export interface Lease extends LeaseInfo, AsyncDisposable {
  /** Holds it for another `ttlMs` from now. @throws {LeaseLostError} when it has been taken over. */
  renew(ttlMs?: number): Promise<void>;
  /** Lets go of it; does nothing when it is lost already. */
  release(): Promise<void>;
}

/**
 * What to add up, over the messages that each session itself appended: what a fork inherited counts in its source, and what
 * a merge brought in the session where it was said.
 */
export interface AggregateQuery {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** Messages from this time on (inclusive). */
  readonly from?: string;
  /** Messages before this time (exclusive). */
  readonly to?: string;
  /** One row for each combination that occurs; an empty list gives one row in all. */
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
  /** What was imported, which is in none of the other figures; absent where nothing was. */
  readonly imported?: ImportedSums;
}

/** What imported messages add up to. What others imported, which does not count, is not among them. */
export interface ImportedSums {
  readonly messages: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** What the programs that the messages came from recorded as their cost. */
  readonly cost: number;
  /** What was spent without a recorded cost, by `provider/model`, or null where no model is named. */
  readonly uncosted: readonly { readonly model: string | null; readonly usage: Usage }[];
}

/** How a store does what all stores can do. */
export interface StoreCapabilities {
  /** Sessions outlive the process. */
  readonly durable: boolean;
  /** Several processes may use the same sessions at once. */
  readonly shared: boolean;
  /** A fork costs the same whatever the source's length. */
  readonly forkByReference: boolean;
  readonly search: "index" | "scan";
  readonly watch: "push" | "poll";
  readonly lease: "shared" | "process";
  /** The file or directory of this machine that it is kept in, where there is one. */
  readonly path?: string;
}

/**
 * Keeps the logs of many sessions. Entries are added, never changed.
 *
 * Every store keeps these promises; `skein/testing` checks each of them:
 * - All drafts of one append are stored, or none, even if the process dies in it.
 * - Once `append` resolves, every reader sees its entries, here and, where the store is `shared`, in other processes.
 * - Appends of several writers all survive, in one order; `seq` counts from 0 without a gap.
 * - An append that repeats an earlier one, id by id, writes nothing and returns what is stored.
 * - While a run is open, results of calls, answers with calls, compactions and prunes are taken from its holder only, which
 *   is whoever guards the append with the live lease's token or with `holds`; all others are refused with `SESSION_BUSY`. A
 *   verbatim copy is taken as it is.
 * - The head is the fold of the entries at all times, `updatedAt` excepted, which is the store's clock.
 * - A refused call throws a `SessionError` and leaves everything as it was.
 * - The cost of an append, of `head` and of `getEntry` does not depend on the length of the log.
 * - After `close`, every method rejects with `STORE_CLOSED`.
 */
export interface SessionStore extends AsyncDisposable {
  readonly capabilities: StoreCapabilities;
  /** Makes a session. `entries` become its first ones; they keep their own ids, times and parents. */
  create(header: SessionHeader, options?: CreateOptions): Promise<SessionHead>;
  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult>;
  /** What the log adds up to, or null for a session that is not there. */
  head(sessionId: string): Promise<SessionHead | null>;
  /** What `head` gives for each of several sessions, in their order; costs less than asking for one after the other. */
  heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]>;
  /** Yields nothing for a session that is not there. */
  read(sessionId: string, options?: ReadOptions): AsyncIterable<Entry>;
  /** What `read` yields, as the JSON of each entry, for whoever passes entries on; at most 1,001 (default 100). */
  readJson(sessionId: string, options?: ReadJsonOptions): Promise<readonly string[]>;
  getEntry(sessionId: string, entryId: string): Promise<Entry | null>;
  /** The summary of the path that ends at a node; null for a fact or an entry that is not there. */
  path(sessionId: string, entryId: string): Promise<PathSummary | null>;
  /** All that was set on a path of the session. The cost follows what is set, not how often something was. */
  settings(sessionId: string, path: PathSummary): Promise<Settings>;
  /**
   * Makes a session whose log is the source's up to and including `at` (default: all of it; null: nothing), with the
   * leaf where the source's stood then. Nothing that happens to either later reaches the other.
   */
  fork(sourceId: string, header: SessionHeader, options?: ForkOptions): Promise<SessionHead>;
  /** Newest first, by the time of the last message. */
  list(query?: SessionQuery): Promise<SessionPage>;
  count(query?: SessionQuery): Promise<number>;
  /**
   * Sessions in which every term occurs: words, `"exact phrases"`, `re:<regex>`. Newest first. What was said in a deleted
   * session cannot be read, so among deleted ones (`deleted: true`) only ids, names and directories are searched.
   */
  search(text: string, query?: SessionQuery): Promise<SearchHit[]>;
  /** Whether there was such a session. It can be brought back until it is purged; forks of it are not affected. */
  delete(sessionId: string): Promise<boolean>;
  /** Brings a deleted session back; false when there is none. */
  undelete(sessionId: string, options?: UndeleteOptions): Promise<boolean>;
  /**
   * Removes for good what was deleted before a time, or what a query names of it, except what a fork still builds on.
   * Returns how many sessions.
   */
  purge(which: string | PurgeQuery): Promise<number>;
  saveCheckpoint(checkpoint: Checkpoint): Promise<void>;
  loadCheckpoint(id: string): Promise<Checkpoint | null>;
  /** Oldest first. With `deleted`, those of a session in the trash instead of a live one. */
  listCheckpoints(sessionId: string, options?: { readonly deleted?: boolean }): Promise<Checkpoint[]>;
  deleteCheckpoint(id: string): Promise<boolean>;
  /**
   * Active and suspended sessions whose `updatedAt` is before that time, the longest idle first. One with a run that waits,
   * to begin or for an answer, is not idle.
   */
  listExpired(before: string, limit: number): Promise<SessionHead[]>;
  /** Yields entries after position `after` (default: from now on) as they come, until the signal aborts. */
  watch(sessionId: string, options?: WatchOptions): AsyncIterable<Entry>;
  /** @throws {SessionBusyError} while anyone holds it, also under the same `runId`: of two who claim a run, one has it. */
  lease(sessionId: string, runId: string, ttlMs: number): Promise<Lease>;
  /** The live lease of a session, or null. */
  leaseOf(sessionId: string): Promise<LeaseInfo | null>;
  aggregate(query: AggregateQuery): Promise<AggregateRow[]>;
  /** What erasing needs, for `SessionManager.erase` alone. @throws {SessionError} `NOT_SUPPORTED` where the driver has none. */
  readonly eraser: StoreEraser;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Which deleted sessions are removed for good. */
export interface PurgeQuery {
  /** Those deleted before this time (default: at any time). */
  readonly before?: string;
  readonly sessionId?: string;
  readonly userId?: string;
}

/**
 * What a store can do to what it holds beside adding to it. Nothing but an erasure uses it: whoever else changes a log
 * breaks what its readers rely on.
 */
export interface StoreEraser {
  /**
   * Gives a live session another log, in one step, if it has `version` entries: `entries` have the positions, ids, parents
   * and times of those before. Checkpoints, times and forks stay; the lease goes. False where the version is another.
   */
  replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean>;
  /** Overwrites a checkpoint of a live session; false where there is none of that id. */
  replaceCheckpoint(checkpoint: Checkpoint): Promise<boolean>;
  /** The sessions, deleted ones too, with an entry or a checkpoint that a user caused; without it all sessions are read. */
  authored?(userId: string): AsyncIterable<readonly string[]>;
  /**
   * Which sessions, deleted ones too, were made from these or begin with entries of them, as pairs; needed where a session
   * in between can be purged and leave its entries to its forks.
   */
  heirs?(sessionIds: readonly string[]): Promise<readonly (readonly [sessionId: string, heirId: string])[]>;
  /** Removes sessions for good, deleted or not, all or none; without it each is deleted and purged. */
  remove?(sessionIds: readonly string[]): Promise<void>;
  /** Small lasting notes beside the sessions, by their keys; those that are not there are left out. Without keys, all. */
  readMarks(keys?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Writes notes, and removes those that are null, all or none. */
  writeMarks(marks: ReadonlyMap<string, string | null>): Promise<void>;
  /** What removing has left behind and nothing refers to, a sentence each; for the doctor. */
  leftovers?(): Promise<readonly string[]>;
  /** Removes what the database has sampled of the contents for its own use, such as column statistics. */
  readonly clearStatistics?: (() => Promise<void>) | undefined;
  /**
   * Writes what the store is kept in anew, so that nothing that was removed is left on its pages.
   *
   * @throws {SessionError} where that cannot be done; nothing that was stored is lost.
   */
  rewrite?(): Promise<void>;
}

/** How a session is made. */
export interface CreateOptions {
  readonly entries?: readonly EntryDraft[];
  /** Refuse entries whose variables take more bytes as JSON, as a guard of an append does. */
  readonly variablesBytesMax?: number;
  /** Refuse with a `SessionCapacityError` when the header's user already has this many active or suspended sessions. */
  readonly maxOpenPerUser?: number;
}

/** How a session is brought back. */
export interface UndeleteOptions {
  /**
   * Refuse with a `SessionCapacityError` when the session is active or suspended and its user already has this many such
   * sessions.
   */
  readonly maxOpenPerUser?: number;
}

/** How a fork is made. */
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

/** What to watch, and until when. */
export interface WatchOptions {
  readonly after?: number;
  readonly signal?: AbortSignal;
}
