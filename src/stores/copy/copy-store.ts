import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { DamagedSession, SessionQuery, SessionStore } from "../../session/store.ts";
import { checkCount } from "../complete/valid-arguments.ts";
import { type CopyProgress, copySession } from "./copy-session.ts";
import { listedHeads, listPages } from "../complete/list-pages.ts";
import { canonicalJson } from "../doctor/log-digest.ts";
import { refusalOf } from "../complete/store-outage.ts";
import { carryErased } from "./tombstones.ts";

/** What is copied, and how. */
export interface CopyStoreOptions {
  /** Only these sessions (default: all live ones). */
  readonly query?: Pick<SessionQuery, "userId" | "cwd" | "status" | "parentId">;
  /**
   * Also the deleted ones, as deleted ones. Each is brought back in the source for as long as it is copied, because a
   * deleted session cannot be read; the time until it may be purged begins anew in both stores.
   */
  readonly includeDeleted?: boolean;
  /** How many sessions are copied at a time (default 4). */
  readonly concurrency?: number;
  readonly onProgress?: (progress: StoreCopyProgress) => void;
  /** Stops between two parts; what was copied stays, and the next copy goes on there. */
  readonly signal?: AbortSignal;
}

const COPY_KEYS: KeysOf<CopyStoreOptions> = {
  query: true,
  includeDeleted: true,
  concurrency: true,
  onProgress: true,
  signal: true,
};

/** How far the copy of a store is; told after every part of a session, with how far that session is. */
export interface StoreCopyProgress extends CopyProgress {
  readonly sessionsDone: number;
  /** How many sessions there are to copy, as far as is known; more may come. */
  readonly sessionsTotal: number;
}

/** A session that was not copied, and why. */
export interface CopyFailure {
  readonly sessionId: string | null;
  readonly error: SessionError;
}

/** What the copy of a store did. */
export interface StoreCopy {
  /** How many sessions the target now has as the source has them. */
  readonly sessions: number;
  readonly entriesWritten: number;
  readonly checkpoints: number;
  /** How many were made by reference to the session that they were forked from. */
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
 * Copies the sessions of a store to another, each as `copySession` does, a fork after the session that it builds on.
 *
 * - Started again after it was stopped or killed, it goes on where it ended.
 * - Sessions that come or grow meanwhile are copied too, up to a moment at which nothing more had come.
 * - A session that cannot be copied is told in `failures`; the others are copied.
 * - What was erased from the source cannot be brought to the target any more, by whatever way.
 *
 * @throws {SessionError} `INVALID_OPTION`, or what a store says that does not answer any more.
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
  return new StoreCopying(from, to, options).run();
}

class StoreCopying {
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
    // A session that is appended to while a listing is read can move past the reader; the next pass finds it.
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      await carryErased(this.#from, this.#to);
      const found = await this.#collect(deletedThere);
      if (found.size === 0) break;
      for (const id of found.keys()) if (!this.#copied.has(id)) this.#planned += 1;
      await this.#copyAll(found);
    }
    // Not before all forks are made: a deleted session cannot be forked.
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
      // An earlier copy deletes a session there only when it is complete.
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

  /** Copies some at a time; the first failure ends it once those under way are done. */
  async #copyAll(sessions: ReadonlyMap<string, Planned>): Promise<void> {
    const queue = sourcesFirst(sessions);
    const copies = new Map<string, Promise<void>>();
    const work = async (): Promise<void> => {
      for (const each of queue) {
        const { id, forkedFrom } = each.header;
        // A source was taken out of the queue before, so that nobody waits in a circle.
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
      this.#failures.set(id, { sessionId: id, error: await refusalOf(error, [this.#from, this.#to]) });
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

/** Sessions in an order in which each comes after the one that it was forked from. */
function* sourcesFirst(sessions: ReadonlyMap<string, Planned>): Generator<Planned> {
  const seen = new Set<Planned>();
  for (const session of sessions.values()) {
    const line: Planned[] = [];
    // Headers are the callers', and some could claim to be forked from each other.
    for (let next: Planned | undefined = session; next !== undefined && !seen.has(next); ) {
      seen.add(next);
      line.push(next);
      next = sessions.get(next.header.forkedFrom?.sessionId ?? "");
    }
    yield* line.reverse();
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
