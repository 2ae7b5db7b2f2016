import { SessionBusyError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";

/** Leases in memory, which exclude the other callers of the same driver. */
export class ProcessLeases implements LeaseTable {
  readonly #clock: () => Date;
  readonly #held = new Map<string, StoredLease>();
  #lastToken = 0;

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease> {
    const live = this.#live(sessionId);
    if (live !== null) throw new SessionBusyError(sessionId, `run ${live.runId}`);
    const held = { runId, token: ++this.#lastToken, untilMs: this.#nowMs() + ttlMs };
    this.#held.set(sessionId, held);
    return held;
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<number | null> {
    const live = this.#live(sessionId);
    if (live?.token !== token) return null;
    const untilMs = this.#nowMs() + ttlMs;
    this.#held.set(sessionId, { ...live, untilMs });
    return untilMs;
  }

  async release(sessionId: string, token: number): Promise<void> {
    if (this.#held.get(sessionId)?.token === token) this.#held.delete(sessionId);
  }

  async current(sessionId: string): Promise<StoredLease | null> {
    return this.#live(sessionId);
  }

  /** The token of the session's live lease, or null. */
  tokenOf(sessionId: string): number | null {
    return this.#live(sessionId)?.token ?? null;
  }

  /** Ends the session's lease, if it has one. */
  drop(sessionId: string): void {
    this.#held.delete(sessionId);
  }

  #live(sessionId: string): StoredLease | null {
    const held = this.#held.get(sessionId);
    return held !== undefined && held.untilMs > this.#nowMs() ? held : null;
  }

  #nowMs(): number {
    return this.#clock().getTime();
  }
}
