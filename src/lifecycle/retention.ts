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

/** Selects the sessions whose retention period is over. */
export interface RetentionRule {
  /** Sessions without an append and without a message since this time. */
  readonly olderThan: Date;
  readonly status?: SessionStatus | readonly SessionStatus[];
  readonly userId?: string;
}

/** The rules for deleting, archiving, purging and erasing. */
export interface RetentionOptions {
  readonly deleteAfter?: RetentionRule;
  /** Erases sessions for good instead of deleting them, as `SessionManager.erase` does, without an archive. */
  readonly eraseAfter?: RetentionRule;
  /** A store to which each session is copied, with a check of the copy, before the session is deleted. */
  readonly archive?: SessionStore;
  /** Purges sessions that were deleted before this time, except entries that forks need. */
  readonly purgeAfter?: { readonly olderThan: Date };
  /** Runs the store's `vacuum` after a purge, if it has one, which returns the space to the file system. */
  readonly vacuum?: boolean;
  /** How many sessions are read in one batch (default 100). */
  readonly batchSize?: number;
  /** The most sessions to delete, and the most to erase, in this pass (default: no limit). */
  readonly limit?: number;
  /** Only reports what would be deleted or erased. */
  readonly dryRun?: boolean;
  /** Called after every batch. */
  readonly onProgress?: (progress: RetentionProgress) => void;
  readonly signal?: AbortSignal;
}

/** The progress of a pass. */
export interface RetentionProgress {
  readonly looked: number;
  readonly deleted: number;
  readonly failed: number;
}

/** The result of a pass, or of a dry run. */
export interface RetentionReport {
  /** The ids of the sessions deleted, or that would be. */
  readonly deleted: readonly string[];
  /** The ids of the sessions erased, or that would be. */
  readonly erased: readonly string[];
  /** How many of the deleted sessions are in the archive. */
  readonly archived: number;
  readonly purged: number;
  readonly vacuumed: boolean;
  /** Sessions that are due but were not deleted or erased, and why. */
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
 * Deletes the sessions that a rule selects, after copying them to an archive if there is one; erases those that another rule
 * selects; and purges sessions that were deleted long enough ago.
 *
 * - A session is deleted or erased only if the rule still applies directly before, no run holds its lease, and the archive has all of it. A
 *   deleted session can be undeleted until it is purged.
 * - A session with forks is deleted like others, and the fork keeps all inherited entries.
 * - A session that cannot be archived or deleted is listed in `failures`, and the pass continues.
 *
 * @throws {SessionError} `INVALID_OPTION`, or the error of a store that is no longer available.
 */
export async function applyRetention(store: SessionStore, options: RetentionOptions): Promise<RetentionReport> {
  checkRetentionOptions(store, options);
  const pass = new RetentionPass(store, options);
  if (options.deleteAfter !== undefined) await pass.deleteAfter(options.deleteAfter);
  if (options.eraseAfter !== undefined) await pass.eraseAfter(options.eraseAfter);
  const dry = options.dryRun === true;
  const before = options.purgeAfter?.olderThan.toISOString();
  options.signal?.throwIfAborted();
  const purged = before === undefined || dry ? 0 : await store.purge(before);
  // Removes the blobs of purged sessions, and unused uploads that are older than a day.
  if (before !== undefined && !dry)
    await store.sweepBlobs(options.signal === undefined ? {} : { signal: options.signal });
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

  /** True if the action was done, or would be in a dry run. */
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
      // The archive lacks entries that were appended after the copy.
      const head = await this.#store.head(sessionId);
      if (head?.version !== version || !isDue(head, rule)) return false;
      this.archived += 1;
    } else {
      // With an archive, its checkpoints still refer to the files; without one, nothing does. Files that cannot be freed are
      // reported by `skein doctor`.
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

function checkRetentionOptions(store: SessionStore, options: RetentionOptions): void {
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
