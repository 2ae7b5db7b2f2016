import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import type { SessionStatus } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import { matchesQuery } from "../session/query.ts";
import type { SessionQuery, SessionStore } from "../session/store.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import { copySession } from "../stores/copy/copy-session.ts";
import { listPages } from "../stores/complete/list-pages.ts";
import { skippableError } from "../stores/complete/skippable-error.ts";
import { CheckpointManager } from "./checkpoints/checkpoint-manager.ts";
import { SessionManager } from "./session-manager.ts";

/** Which sessions have been kept long enough. */
export interface RetentionRule {
  /** Nothing was appended since then, and no message is later. */
  readonly olderThan: Date;
  readonly status?: SessionStatus | readonly SessionStatus[];
  readonly userId?: string;
}

/** What is to be deleted, archived, purged and erased. */
export interface RetentionOptions {
  readonly deleteAfter?: RetentionRule;
  /** Erases sessions for good instead, as `SessionManager.erase` does, without an archive. */
  readonly eraseAfter?: RetentionRule;
  /** A store that each session is copied to, and read back from, before it is deleted. */
  readonly archive?: SessionStore;
  /** Removes for good what was deleted before then, except what forks build on. */
  readonly purgeAfter?: { readonly olderThan: Date };
  /** After a purge, gives the space back to the file system where the store can do that at once (`vacuum`). */
  readonly vacuum?: boolean;
  /** How many sessions are looked at together (default 100). */
  readonly batchSize?: number;
  /** At most so many sessions are deleted, and as many erased, in this pass (default: all). */
  readonly limit?: number;
  /** Only says what would be deleted or erased. */
  readonly dryRun?: boolean;
  /** Told after every batch. */
  readonly onProgress?: (progress: RetentionProgress) => void;
  readonly signal?: AbortSignal;
}

/** How far a pass is. */
export interface RetentionProgress {
  readonly looked: number;
  readonly deleted: number;
  readonly failed: number;
}

/** What a pass did, or would do. */
export interface RetentionReport {
  /** The sessions that were deleted, or would be. */
  readonly deleted: readonly string[];
  /** The sessions that were erased, or would be. */
  readonly erased: readonly string[];
  /** How many of the deleted ones the archive has. */
  readonly archived: number;
  readonly purged: number;
  readonly vacuumed: boolean;
  /** Sessions that are due and were left as they are, and why. */
  readonly failures: readonly { readonly sessionId: string; readonly error: SessionError }[];
}

const BATCH_SESSIONS = 100;

const RULE_KEYS: KeysOf<RetentionRule> = { olderThan: true, status: true, userId: true };
const RETENTION_KEYS: KeysOf<RetentionOptions> = {
  deleteAfter: true,
  eraseAfter: true,
  archive: true,
  purgeAfter: true,
  vacuum: true,
  batchSize: true,
  limit: true,
  dryRun: true,
  onProgress: true,
  signal: true,
};

/**
 * Deletes the sessions that a rule names, after copying them to an archive if there is one, erases those that another rule
 * names, and purges what was deleted long enough ago.
 *
 * - A session is deleted or erased only if it still falls under the rule right before, nobody holds its lease, and the archive has
 *   all of it. A deleted session can be brought back until it is purged.
 * - A session that a fork builds on goes as the others do, and the fork keeps every entry that it has of it.
 * - A session that cannot be archived or deleted is told in `failures`, and the pass goes on.
 *
 * @throws {SessionError} `INVALID_OPTION`, or what a store says that does not answer any more.
 */
export async function applyRetention(store: SessionStore, options: RetentionOptions): Promise<RetentionReport> {
  checkOptions(store, options);
  const pass = new RetentionPass(store, options);
  if (options.deleteAfter !== undefined) await pass.deleteAfter(options.deleteAfter);
  if (options.eraseAfter !== undefined) await pass.eraseAfter(options.eraseAfter);
  const dry = options.dryRun === true;
  const before = options.purgeAfter?.olderThan.toISOString();
  options.signal?.throwIfAborted();
  const purged = before === undefined || dry ? 0 : await store.purge(before);
  const vacuums = options.vacuum === true && purged > 0 && canVacuum(store);
  if (vacuums) await store.vacuum();
  const { deleted, erased, archived, failures } = pass;
  return { deleted, erased, archived, purged, vacuumed: vacuums, failures };
}

class RetentionPass {
  readonly deleted: string[] = [];
  readonly erased: string[] = [];
  readonly failures: { readonly sessionId: string; readonly error: SessionError }[] = [];
  archived = 0;
  readonly #store: SessionStore;
  readonly #options: RetentionOptions;
  #looked = 0;

  constructor(store: SessionStore, options: RetentionOptions) {
    this.#store = store;
    this.#options = options;
  }

  deleteAfter(rule: RetentionRule): Promise<void> {
    return this.#walk(rule, this.deleted, (sessionId) => this.#delete(sessionId, rule));
  }

  eraseAfter(rule: RetentionRule): Promise<void> {
    const manager = new SessionManager({ store: this.#store });
    const { signal } = this.#options;
    return this.#walk(rule, this.erased, async (sessionId) => {
      await manager.erase({ sessionId }, signal === undefined ? {} : { signal });
      return true;
    });
  }

  async #walk(rule: RetentionRule, done: string[], act: (sessionId: string) => Promise<boolean>): Promise<void> {
    const { batchSize = BATCH_SESSIONS, limit = Number.MAX_SAFE_INTEGER, signal, onProgress } = this.#options;
    for await (const { items } of listPages(this.#store, { ...queryOf(rule), limit: batchSize })) {
      for (const head of items.filter((item) => isDue(item, rule))) {
        if (done.length >= limit) return;
        signal?.throwIfAborted();
        if (await this.#attempt(head.header.id, rule, act)) done.push(head.header.id);
      }
      this.#looked += items.length;
      onProgress?.({ looked: this.#looked, deleted: this.deleted.length, failed: this.failures.length });
    }
  }

  /** Whether it was done, or would be. */
  async #attempt(
    sessionId: string,
    rule: RetentionRule,
    act: (sessionId: string) => Promise<boolean>,
  ): Promise<boolean> {
    const { archive, signal, dryRun } = this.#options;
    try {
      return (await this.#isStillDue(sessionId, rule)) && (dryRun === true || (await act(sessionId)));
    } catch (error) {
      signal?.throwIfAborted();
      const stores = archive === undefined ? [this.#store] : [this.#store, archive];
      this.failures.push({ sessionId, error: await skippableError(error, stores) });
      return false;
    }
  }

  async #delete(sessionId: string, rule: RetentionRule): Promise<boolean> {
    const { archive, signal } = this.#options;
    if (archive !== undefined) {
      const { version } = await copySession(this.#store, archive, sessionId, signal === undefined ? {} : { signal });
      // What came since it was copied would be missing in the archive.
      const head = await this.#store.head(sessionId);
      if (head?.version !== version || !isDue(head, rule)) return false;
      this.archived += 1;
    } else {
      // The archive's checkpoints go on naming the files; without one, nobody will. What cannot be freed, doctor finds.
      await new CheckpointManager(this.#store).deleteAll(sessionId, "with-files");
    }
    return this.#store.delete(sessionId);
  }

  async #isStillDue(sessionId: string, rule: RetentionRule): Promise<boolean> {
    const head = await this.#store.head(sessionId);
    return head !== null && isDue(head, rule) && (await this.#store.leaseOf(sessionId)) === null;
  }
}

function isDue(head: SessionHead, rule: RetentionRule): boolean {
  const before = rule.olderThan.toISOString();
  return head.updatedAt < before && head.modifiedAt < before && matchesQuery(head, queryOf(rule));
}

function queryOf({ status, userId }: RetentionRule): SessionQuery {
  return { ...(status !== undefined && { status }), ...(userId !== undefined && { userId }) };
}

function canVacuum(store: SessionStore): store is SessionStore & { vacuum(): Promise<void> } {
  return "vacuum" in store && typeof store.vacuum === "function";
}

function checkOptions(store: SessionStore, options: RetentionOptions): void {
  checkStoreArgument(store, "applyRetention");
  checkOptionsOf(options, RETENTION_KEYS, "applyRetention");
  const { archive, batchSize, limit } = options;
  const rules = (["deleteAfter", "purgeAfter", "eraseAfter"] as const).filter((rule) => options[rule] !== undefined);
  if (rules.length === 0)
    throw new SessionError(
      "INVALID_OPTION",
      "Retention has nothing to do; give deleteAfter, purgeAfter, eraseAfter or several of them.",
    );
  for (const rule of ["deleteAfter", "eraseAfter"] as const)
    if (options[rule] !== undefined) checkOptionsOf(options[rule], RULE_KEYS, rule);
  if (options.purgeAfter !== undefined) checkOptionsOf(options.purgeAfter, { olderThan: true }, "purgeAfter");
  for (const rule of rules) checkDate(options[rule]?.olderThan, `${rule}.olderThan`);
  if (archive === store) throw new SessionError("INVALID_OPTION", "The archive must be another store than this one.");
  if (batchSize !== undefined) checkCount(batchSize, "batchSize", 1, PAGE_ITEMS_MAX);
  if (limit !== undefined) checkCount(limit, "limit", 1);
}

function checkDate(value: unknown, name: string): void {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return;
  throw new SessionError("INVALID_OPTION", `The option ${name} is ${show(value)}; it must be a Date.`);
}
