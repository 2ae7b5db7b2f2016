import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { DamagedSession, SessionQuery, SessionStore } from "../../session/store.ts";
import { checkCount } from "../complete/valid-arguments.ts";
import { type CopyProgress, copySession } from "./copy-session.ts";
import { listedHeads, listPages } from "../complete/list-pages.ts";
import { canonicalJson } from "../doctor/log-digest.ts";
import { skippableError } from "../complete/skippable-error.ts";
import { copyTombstones } from "../tombstones.ts";

/** Options of `copyStore`. */
export interface CopyStoreOptions {
  /** Only these sessions (default: all live ones). */
  readonly query?: Pick<SessionQuery, "userId" | "cwd" | "status" | "parentId">;
  /**
   * Also copy deleted sessions, which are deleted in the target too. Each is undeleted in the source while it is copied,
   * because a deleted session cannot be read; so its time of deletion is new in both stores.
   */
  readonly includeDeleted?: boolean;
  /** How many sessions are copied at a time (default 4). */
  readonly concurrency?: number;
  readonly onProgress?: (progress: StoreCopyProgress) => void;
  /** Stops the copy between two parts. The copied sessions are kept, and the next copy continues after them. */
  readonly signal?: AbortSignal;
}

const COPY_KEYS: KeysOf<CopyStoreOptions> = {
  query: true,
  includeDeleted: true,
  concurrency: true,
  onProgress: true,
  signal: true,
};

/** The progress of the copy of a store, reported after every part of a session together with that session's progress. */
export interface StoreCopyProgress extends CopyProgress {
  readonly sessionsDone: number;
  /** How many sessions are to be copied, as far as is known; it may grow. */
  readonly sessionsTotal: number;
}

/** A session that was not copied, and why. */
export interface CopyFailure {
  readonly sessionId: string | null;
  readonly error: SessionError;
}

/** The result of the copy of a store. */
export interface StoreCopy {
  /** How many sessions are now equal in both stores. */
  readonly sessions: number;
  readonly entriesWritten: number;
  readonly checkpoints: number;
  /** How many were copied by forking their source session in the target. */
  readonly forked: number;
  readonly failures: readonly CopyFailure[];
}

interface Planned {
  readonly header: SessionHeader;
  readonly deleted: boolean;
}

const CONCURRENCY_DEFAULT = 4;
const CONCURRENCY_MAX = 64;
const PASSES_MAX = 20;

/**
 * Copies the sessions of a store to another store, each with `copySession`, and a fork after its source.
 *
 * - If it is started again after it was stopped or killed, it continues where it ended.
 * - Sessions that are created or grow meanwhile are copied too, until there are no new entries.
 * - A session that cannot be copied is listed in `failures`; the others are copied.
 * - The tombstones of the source are copied first, so the target refuses what was erased from the source.
 *
 * @throws {SessionError} `INVALID_OPTION`, or the error of a store that does not answer any more.
 */
export async function copyStore(
  from: SessionStore,
  to: SessionStore,
  options: CopyStoreOptions = {},
): Promise<StoreCopy> {
  checkStoreArgument(from, "copyStore");
  checkStoreArgument(to, "copyStore");
  checkOptionsOf(options, COPY_KEYS, "copyStore");
  if (from === to) throw new SessionError("INVALID_OPTION", "A store cannot be copied to itself.");
  if (options.concurrency !== undefined) checkCount(options.concurrency, "concurrency", 1, CONCURRENCY_MAX);
  return new StoreCopier(from, to, options).run();
}

class StoreCopier {
  readonly #from: SessionStore;
  readonly #to: SessionStore;
  readonly #options: CopyStoreOptions;
  /** The version that each session was copied up to. */
  readonly #copied = new Map<string, number>();
  readonly #failures = new Map<string, CopyFailure>();
  readonly #deleted = new Set<string>();
  #planned = 0;
  #entriesWritten = 0;
  #checkpoints = 0;
  #forked = 0;

  constructor(from: SessionStore, to: SessionStore, options: CopyStoreOptions) {
    this.#from = from;
    this.#to = to;
    this.#options = options;
  }

  async run(): Promise<StoreCopy> {
    const deletedThere = this.#options.includeDeleted === true ? await deletedIn(this.#to) : new Map<string, string>();
    // An append moves its session to the listing's beginning, so a listing under way can miss it; the next pass finds it.
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      await copyTombstones(this.#from, this.#to);
      const found = await this.#collect(deletedThere);
      if (found.size === 0) break;
      for (const id of found.keys()) if (!this.#copied.has(id)) this.#planned += 1;
      await this.#copyAll(found);
    }
    // Delete only after all forks were made, since a deleted session cannot be forked.
    for (const id of this.#deleted) await this.#to.delete(id);
    return {
      sessions: this.#copied.size,
      entriesWritten: this.#entriesWritten,
      checkpoints: this.#checkpoints,
      forked: this.#forked,
      failures: [...this.#failures.values()],
    };
  }

  async #collect(deletedThere: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, Planned>> {
    const found = new Map<string, Planned>();
    const add = ({ header, version }: SessionHead, deleted: boolean): void => {
      if (this.#failures.has(header.id) || this.#copied.get(header.id) === version) return;
      found.set(header.id, { header, deleted });
    };
    const { query = {}, includeDeleted } = this.#options;
    for await (const head of this.#sessions({ ...query })) add(head, false);
    if (includeDeleted !== true) return found;
    for await (const head of this.#sessions({ ...query, deleted: true })) {
      // An earlier copy deletes a session in the target only when it is complete.
      if (deletedThere.get(head.header.id) === identityOf(head)) this.#copied.set(head.header.id, head.version);
      add(head, true);
    }
    return found;
  }

  async *#sessions(query: SessionQuery): AsyncGenerator<SessionHead> {
    for await (const { items, damaged } of listPages(this.#from, query)) {
      this.#options.signal?.throwIfAborted();
      for (const each of damaged) this.#failures.set(each.id ?? each.path, unreadable(each));
      yield* items;
    }
  }

  /** Copies `concurrency` sessions at a time. Rejects with the first failure after all running copies have ended. */
  async #copyAll(sessions: ReadonlyMap<string, Planned>): Promise<void> {
    const queue = sourcesFirst(sessions);
    const copies = new Map<string, Promise<void>>();
    const work = async (): Promise<void> => {
      for (const each of queue) {
        const { id, forkedFrom } = each.header;
        // The source of a fork was taken from the queue before it, so that the waits cannot form a cycle.
        const source = Promise.resolve(copies.get(forkedFrom?.sessionId ?? ""));
        const copy = source.then(() => this.#copyOne(each));
        copies.set(id, copy);
        await copy;
      }
    };
    const { concurrency = CONCURRENCY_DEFAULT } = this.#options;
    const ends = await Promise.allSettled(Array.from({ length: concurrency }, work));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async #copyOne({ header, deleted }: Planned): Promise<void> {
    const { id } = header;
    try {
      await (deleted ? this.#copyDeleted(id) : this.#copyLive(id));
    } catch (error) {
      this.#options.signal?.throwIfAborted();
      this.#failures.set(id, { sessionId: id, error: await skippableError(error, [this.#from, this.#to]) });
    }
  }

  async #copyLive(id: string): Promise<void> {
    const { signal, onProgress } = this.#options;
    const copied = await copySession(this.#from, this.#to, id, {
      ...(signal !== undefined && { signal }),
      onProgress: (progress) =>
        onProgress?.({ ...progress, sessionsDone: this.#copied.size, sessionsTotal: this.#planned }),
    });
    const again = this.#copied.has(id);
    this.#copied.set(id, copied.version);
    this.#entriesWritten += copied.appended;
    this.#checkpoints += again ? 0 : copied.checkpoints;
    this.#forked += copied.forked ? 1 : 0;
  }

  async #copyDeleted(id: string): Promise<void> {
    if (!(await this.#from.undelete(id))) return;
    try {
      await this.#copyLive(id);
      this.#deleted.add(id);
    } finally {
      await this.#from.delete(id);
    }
  }
}

/** Sorts sessions so that each comes after its fork source. */
function* sourcesFirst(sessions: ReadonlyMap<string, Planned>): Generator<Planned> {
  const seen = new Set<Planned>();
  for (const session of sessions.values()) {
    const chain: Planned[] = [];
    // Callers write the headers, so sessions could claim to be forked from each other: visit each only once.
    for (let next: Planned | undefined = session; next !== undefined && !seen.has(next); ) {
      seen.add(next);
      chain.push(next);
      next = sessions.get(next.header.forkedFrom?.sessionId ?? "");
    }
    yield* chain.reverse();
  }
}

async function deletedIn(store: SessionStore): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const head of listedHeads(store, { deleted: true })) found.set(head.header.id, identityOf(head));
  return found;
}

function identityOf({ header, version }: SessionHead): string {
  return canonicalJson({ header, version });
}

function unreadable({ id, path, reason }: DamagedSession): CopyFailure {
  return { sessionId: id, error: new SessionError("DAMAGED", `${path} cannot be read and was not copied: ${reason}.`) };
}
