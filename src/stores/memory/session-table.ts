import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import { compareForListing, listPosition } from "../../session/query.ts";
import type { DriverPurge, ListPosition } from "../../session/store-driver.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { MemoryLog } from "./memory-log.ts";

/** One session as it is kept. */
export interface MemorySession {
  /** Frozen, as it is handed out. */
  head: SessionHead;
  log: MemoryLog;
  deletedAt: string | null;
  /** In the order they were saved. */
  readonly checkpoints: Set<string>;
}

/** The sessions of a memory store, deleted ones included, by id, by user, by source, and in the order of a listing. */
export class SessionTable {
  readonly #byId = new Map<string, MemorySession>();
  readonly #byUser = new Map<string, Set<MemorySession>>();
  readonly #bySource = new Map<string, Set<MemorySession>>();
  /** Logs of purged sessions that a fork still builds on. */
  readonly #orphans = new Set<MemoryLog>();
  #listing: MemorySession[] = [];
  #listingSorted = true;

  live(id: string): MemorySession | undefined {
    const session = this.#byId.get(id);
    return session?.deletedAt === null ? session : undefined;
  }

  deleted(id: string): MemorySession | undefined {
    const session = this.#byId.get(id);
    return session?.deletedAt === null ? undefined : session;
  }

  /** @throws {SessionError} `SESSION_EXISTS` when a session has that id, also a deleted one. */
  checkFree(id: string): void {
    if (this.#byId.has(id))
      throw new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
  }

  add(head: SessionHead, log: MemoryLog): MemorySession {
    const session: MemorySession = { head: freezeDeep(head), log, deletedAt: null, checkpoints: new Set() };
    const { id, userId, forkedFrom } = head.header;
    this.#byId.set(id, session);
    if (userId !== null) addTo(this.#byUser, userId, session);
    if (forkedFrom !== null) addTo(this.#bySource, forkedFrom.sessionId, session);
    this.#listing.push(session);
    this.#listingSorted = false;
    return session;
  }

  setHead(session: MemorySession, head: SessionHead): void {
    if (head.modifiedAt !== session.head.modifiedAt) this.#listingSorted = false;
    session.head = freezeDeep(head);
  }

  /** How many active and suspended sessions a user has. */
  openOf(userId: string): number {
    return countOf(this.#byUser.get(userId), ({ head, deletedAt }) => deletedAt === null && isOpen(head));
  }

  /** How many forks a session has. */
  forksOf(sourceId: string): number {
    return countOf(this.#bySource.get(sourceId), ({ deletedAt }) => deletedAt === null);
  }

  /** All sessions, or all deleted ones. */
  *all(deleted: boolean): Generator<MemorySession> {
    for (const session of this.#byId.values()) if ((session.deletedAt !== null) === deleted) yield session;
  }

  /** The sessions that follow a place in the listing, or deleted ones, in its order. */
  *from(after: ListPosition | null, deleted: boolean): Generator<MemorySession> {
    // Sorting what is nearly sorted is cheap, and between writes nothing is to be sorted at all.
    if (!this.#listingSorted)
      this.#listing.sort((a, b) => compareForListing(listPosition(a.head), listPosition(b.head)));
    this.#listingSorted = true;
    for (let i = after === null ? 0 : this.#indexAfter(after); i < this.#listing.length; i++) {
      const session = this.#listing[i] as MemorySession;
      if ((session.deletedAt !== null) === deleted) yield session;
    }
  }

  /** Gives a session another log; of the one before, what no fork builds on goes. */
  replace(session: MemorySession, head: SessionHead, log: MemoryLog): void {
    this.#orphans.add(session.log);
    session.log = log;
    this.setHead(session, head);
    this.#cutOrphans();
  }

  /** Removes what was deleted before a time, and of each log what no fork builds on. */
  purge({ before, sessionId, userId }: DriverPurge): MemorySession[] {
    const purged = [...this.#byId.values()].filter(
      ({ deletedAt, head: { header } }) =>
        deletedAt !== null &&
        deletedAt < before &&
        (sessionId === undefined || header.id === sessionId) &&
        (userId === undefined || header.userId === userId),
    );
    if (purged.length === 0) return [];
    for (const session of purged) {
      const { id, userId, forkedFrom } = session.head.header;
      this.#byId.delete(id);
      if (userId !== null) removeFrom(this.#byUser, userId, session);
      if (forkedFrom !== null) removeFrom(this.#bySource, forkedFrom.sessionId, session);
      this.#orphans.add(session.log);
    }
    const gone = new Set(purged);
    this.#listing = this.#listing.filter((session) => !gone.has(session));
    this.#cutOrphans();
    return purged;
  }

  #cutOrphans(): void {
    const needed = new Map<MemoryLog, number>();
    for (const { log } of this.#byId.values()) {
      for (let fork = log; fork.source !== null; fork = fork.source) {
        const known = needed.get(fork.source);
        needed.set(fork.source, Math.max(known ?? 0, fork.base));
        // What that source itself builds on was noted when it was first met.
        if (known !== undefined) break;
      }
    }
    for (const log of this.#orphans) {
      const version = needed.get(log);
      if (version === undefined) this.#orphans.delete(log);
      log.cut(version ?? log.base);
    }
  }

  #indexAfter(position: ListPosition): number {
    let [low, high] = [0, this.#listing.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const { head } = this.#listing[middle] as MemorySession;
      if (compareForListing(listPosition(head), position) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Whether a session is active or suspended. */
export function isOpen({ status }: SessionHead): boolean {
  return status === "active" || status === "suspended";
}

function countOf(sessions: Iterable<MemorySession> | undefined, counts: (session: MemorySession) => boolean): number {
  let count = 0;
  for (const session of sessions ?? []) if (counts(session)) count += 1;
  return count;
}

function addTo(index: Map<string, Set<MemorySession>>, key: string, session: MemorySession): void {
  const sessions = index.get(key);
  if (sessions === undefined) index.set(key, new Set([session]));
  else sessions.add(session);
}

function removeFrom(index: Map<string, Set<MemorySession>>, key: string, session: MemorySession): void {
  const sessions = index.get(key);
  sessions?.delete(session);
  if (sessions?.size === 0) index.delete(key);
}
