import { SessionConflictError, SessionNotFoundError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { hasWaitingRun } from "../session/log/open-runs.ts";
import type { SessionStore } from "../session/store.ts";

const TRIES_MAX = 5;

/** What expiry is decided by. */
export interface ExpiryInit {
  readonly store: SessionStore;
  /** How long a session may be idle; 0 for ever. */
  readonly ttlSeconds: number;
  readonly clock: () => Date;
  /** Called once for each expiry that this process has put on record, with the head before and after it. */
  readonly recorded: (before: SessionHead, after: SessionHead) => void;
}

/** Decides when a session has been idle for too long, by the store's time of its last append, and records it. */
export class Expiry {
  readonly #init: ExpiryInit;
  #cutoffMs = Number.NaN;
  #cutoff = "";

  constructor(init: ExpiryInit) {
    this.#init = init;
  }

  /** Sessions whose last append is before this time have expired; null when none ever does. */
  cutoff(): string | null {
    const { ttlSeconds, clock } = this.#init;
    if (ttlSeconds === 0) return null;
    const cutoffMs = clock().getTime() - ttlSeconds * 1000;
    // Many requests fall into one millisecond, and writing a time down is not cheap.
    if (cutoffMs !== this.#cutoffMs) this.#cutoff = new Date(cutoffMs).toISOString();
    this.#cutoffMs = cutoffMs;
    return this.#cutoff;
  }

  /**
   * Whether a session has expired and its log does not say so yet. One with a run that waits, to begin or for an answer, is
   * not idle.
   */
  isDue(head: SessionHead): boolean {
    const cutoff = this.cutoff();
    if (cutoff === null || head.updatedAt >= cutoff) return false;
    return (head.status === "active" || head.status === "suspended") && !hasWaitingRun(head.openRuns);
  }

  /** The head as a reader is to see it: a session that is due has expired, whether or not that is on record. */
  seen(head: SessionHead): SessionHead {
    return this.isDue(head) ? { ...head, status: "expired" } : head;
  }

  /** Puts the expiry on record. False when someone else appended first, or deleted the session. */
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

  /** The head for whoever wants to write: an expiry that is due goes on record first. */
  async expireIfDue(head: SessionHead): Promise<SessionHead> {
    let latest = head;
    for (let tries = 0; tries < TRIES_MAX && this.isDue(latest); tries++) {
      if (await this.record(latest)) return { ...latest, version: latest.version + 1, status: "expired" };
      const next = await this.#init.store.head(head.header.id);
      if (next === null) throw new SessionNotFoundError(head.header.id);
      latest = next;
    }
    return this.seen(latest);
  }
}
