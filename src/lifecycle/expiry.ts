import { SessionConflictError, SessionNotFoundError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { hasWaitingRun } from "../session/log/open-runs.ts";
import type { SessionStore } from "../session/store.ts";

const TRIES_MAX = 5;

/** The parts of `Expiry`. */
export interface ExpiryInit {
  readonly store: SessionStore;
  /** How long a session may be idle; 0 for no limit. */
  readonly ttlSeconds: number;
  readonly clock: () => Date;
  /** Called once for each expiry that this process has recorded, with the heads before and after it. */
  readonly recorded: (before: SessionHead, after: SessionHead) => void;
}

/** Decides when a session has expired, by the store's time of its last append, and records the expiry. */
export class Expiry {
  readonly #init: ExpiryInit;
  #cutoffMs = Number.NaN;
  #cutoff = "";

  constructor(init: ExpiryInit) {
    this.#init = init;
  }

  /** Sessions whose last append is before this time have expired; null if sessions never expire. */
  cutoff(): string | null {
    const { ttlSeconds, clock } = this.#init;
    if (ttlSeconds === 0) return null;
    const cutoffMs = clock().getTime() - ttlSeconds * 1000;
    // Cached: many requests fall into one millisecond, and formatting a time is expensive.
    if (cutoffMs !== this.#cutoffMs) this.#cutoff = new Date(cutoffMs).toISOString();
    this.#cutoffMs = cutoffMs;
    return this.#cutoff;
  }

  /**
   * Whether a session has expired and the expiry is not recorded yet. A session with a run that waits to start or for an answer
   * is not idle.
   */
  isDue(head: SessionHead): boolean {
    const cutoff = this.cutoff();
    if (cutoff === null || head.updatedAt >= cutoff) return false;
    return (head.status === "active" || head.status === "suspended") && !hasWaitingRun(head.openRuns);
  }

  /** The head as readers see it: an expiry that is due counts as recorded. */
  asSeen(head: SessionHead): SessionHead {
    return this.isDue(head) ? { ...head, status: "expired" } : head;
  }

  /** Records the expiry. False if another writer appended first, or the session was deleted. */
  async record(head: SessionHead): Promise<boolean> {
    const { store, recorded } = this.#init;
    try {
      const draft = { type: "status", status: "expired", reason: "expired" } as const;
      const { head: after } = await store.append(head.header.id, [draft], { expectedVersion: head.version });
      recorded(head, after);
      return true;
    } catch (error) {
      if (error instanceof SessionConflictError || error instanceof SessionNotFoundError) return false;
      throw error;
    }
  }

  /** The head for a writer: records an expiry that is due first. */
  async expireIfDue(head: SessionHead): Promise<SessionHead> {
    let latest = head;
    for (let tries = 0; tries < TRIES_MAX && this.isDue(latest); tries++) {
      if (await this.record(latest)) return { ...latest, version: latest.version + 1, status: "expired" };
      const next = await this.#init.store.head(head.header.id);
      if (next === null) throw new SessionNotFoundError(head.header.id);
      latest = next;
    }
    return this.asSeen(latest);
  }
}
