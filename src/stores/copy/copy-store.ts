import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { DamagedSession, SessionQuery, SessionStore } from "../../session/store.ts";
import { checkCount } from "../complete/valid-arguments.ts";
import { type CopyProgress, copySession } from "./copy-session.ts";
import { listPages } from "../complete/list-pages.ts";
import { canonicalJson } from "../doctor/log-digest.ts";
import { refusalOf } from "../complete/store-outage.ts";

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
  readonly version: number;
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
 *
 * @throws {SessionError} `INVALID_OPTION`, or what a store says that does not answer any more.
 */
export async function copyStore(
  from: SessionStore,
  to: SessionStore,
  options: CopyStoreOptions = {},
): Promise<StoreCopy> {
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
      const found = await this.#collect(deletedThere);
      if (found.length === 0) break;
      this.#planned += found.filter(({ header }) => !this.#copied.has(header.id)).length;
      for (const level of levelsOf(found)) {
        await inParallel(level, this.#options.concurrency ?? CONCURRENCY_DEFAULT, (each) => this.#copyOne(each));
      }
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

  async #collect(deletedThere: ReadonlyMap<string, string>): Promise<Planned[]> {
    const found = new Map<string, Planned>();
    const add = ({ header, version }: SessionHead, deleted: boolean): void => {
      if (this.#failures.has(header.id) || this.#copied.get(header.id) === version) return;
      found.set(header.id, { header, version, deleted });
    };
    const { query = {}, includeDeleted } = this.#options;
    for await (const head of this.#sessions({ ...query })) add(head, false);
    if (includeDeleted !== true) return [...found.values()];
    for await (const head of this.#sessions({ ...query, deleted: true })) {
      // An earlier copy deletes a session there only when it is complete.
      if (deletedThere.get(head.header.id) === identityOf(head)) this.#copied.set(head.header.id, head.version);
      add(head, true);
    }
    return [...found.values()];
  }

  async *#sessions(query: SessionQuery): AsyncGenerator<SessionHead> {
    for await (const { items, damaged } of listPages(this.#from, query)) {
      this.#options.signal?.throwIfAborted();
      for (const each of damaged) this.#failures.set(each.id ?? each.path, unreadable(each));
      yield* items;
    }
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

/** Sessions in groups, each group after those that its members were forked from. */
function levelsOf(sessions: readonly Planned[]): Planned[][] {
  const ids = new Set(sessions.map(({ header }) => header.id));
  const forks = new Map<string, Planned[]>();
  const forksOf = (id: string): Planned[] => {
    const known = forks.get(id) ?? [];
    forks.set(id, known);
    return known;
  };
  let level: Planned[] = [];
  for (const each of sessions) {
    const sourceId = each.header.forkedFrom?.sessionId;
    if (sourceId === undefined || !ids.has(sourceId)) level.push(each);
    else forksOf(sourceId).push(each);
  }
  const levels: Planned[][] = [];
  while (level.length > 0) {
    levels.push(level);
    level = level.flatMap(({ header }) => {
      const next = forks.get(header.id) ?? [];
      forks.delete(header.id);
      return next;
    });
  }
  // Headers are the callers', and some could claim to be forked from each other.
  const rest = [...forks.values()].flat();
  return rest.length === 0 ? levels : [...levels, rest];
}

/** Runs a task for each item, some at a time; the first failure ends it once those under way are done. */
async function inParallel<T>(
  items: readonly T[],
  concurrency: number,
  task: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  let failure: { readonly error: unknown } | null = null;
  const work = async (): Promise<void> => {
    for (const item of queue) {
      if (failure !== null) return;
      try {
        await task(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}

async function deletedIn(store: SessionStore): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { items } of listPages(store, { deleted: true })) {
    for (const head of items) found.set(head.header.id, identityOf(head));
  }
  return found;
}

function identityOf({ header, version }: SessionHead): string {
  return canonicalJson({ header, version });
}

function unreadable({ id, path, reason }: DamagedSession): CopyFailure {
  return { sessionId: id, error: new SessionError("DAMAGED", `${path} cannot be read and was not copied: ${reason}.`) };
}
