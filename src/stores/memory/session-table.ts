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

/** The sessions of a memory store, deleted ones included, by id and in the order of a listing. */
export class SessionTable {
  readonly #byId = new Map<string, MemorySession>();
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
    this.#byId.set(head.header.id, session);
    this.#listing.push(session);
    this.#listingSorted = false;
    return session;
  }

  setHead(session: MemorySession, head: SessionHead): void {
    if (head.modifiedAt !== session.head.modifiedAt) this.#listingSorted = false;
    session.head = freezeDeep(head);
  }

  /** How many sessions there are of a kind, or deleted ones. */
  count(counts: (head: SessionHead) => boolean, deleted = false): number {
    let count = 0;
    for (const { head } of this.all(deleted)) if (counts(head)) count += 1;
    return count;
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

  /** Gives a session another log; forks keep what they begin with of the one before. */
  replace(session: MemorySession, head: SessionHead, log: MemoryLog): void {
    const before = session.log;
    session.log = log;
    this.setHead(session, head);
    this.#forget(new Set([before]));
  }

  /** Removes what was deleted before a time; forks keep what they begin with. */
  purge({ before, sessionId, userId }: DriverPurge): MemorySession[] {
    const purged = [...this.#byId.values()].filter(
      ({ deletedAt, head: { header } }) =>
        deletedAt !== null &&
        deletedAt < before &&
        (sessionId === undefined || header.id === sessionId) &&
        (userId === undefined || header.userId === userId),
    );
    if (purged.length === 0) return [];
    for (const { head } of purged) this.#byId.delete(head.header.id);
    this.#listing = this.#listing.filter(({ head }) => this.#byId.has(head.header.id));
    this.#forget(new Set(purged.map(({ log }) => log)));
    return purged;
  }

  #forget(logs: ReadonlySet<MemoryLog>): void {
    for (const { log } of this.#byId.values()) log.outlive(logs);
    for (const log of logs) log.clear();
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
