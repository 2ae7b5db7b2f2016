import { SessionBusyError } from "../../session/errors.ts";
import type { LeaseTable } from "../../session/store-driver.ts";
import type { LeaseInfo } from "../../session/store.ts";

interface Held {
  readonly runId: string;
  readonly token: number;
  expiresMs: number;
}

/** Leases that hold among the callers of one store object. */
export class ProcessLeases implements LeaseTable {
  readonly #clock: () => Date;
  readonly #held = new Map<string, Held>();
  #lastToken = 0;

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<LeaseInfo> {
    const live = this.#live(sessionId);
    if (live !== null) throw new SessionBusyError(sessionId, `run ${live.runId}`);
    const held = { runId, token: ++this.#lastToken, expiresMs: this.#now() + ttlMs };
    this.#held.set(sessionId, held);
    return infoOf(sessionId, held);
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<string | null> {
    const live = this.#live(sessionId);
    if (live?.token !== token) return null;
    live.expiresMs = this.#now() + ttlMs;
    return new Date(live.expiresMs).toISOString();
  }

  async release(sessionId: string, token: number): Promise<void> {
    if (this.#held.get(sessionId)?.token === token) this.#held.delete(sessionId);
  }

  async current(sessionId: string): Promise<LeaseInfo | null> {
    const live = this.#live(sessionId);
    return live === null ? null : infoOf(sessionId, live);
  }

  /** The token of the session's live lease, or null. */
  tokenOf(sessionId: string): number | null {
    return this.#live(sessionId)?.token ?? null;
  }

  /** Ends whatever lease the session has. */
  drop(sessionId: string): void {
    this.#held.delete(sessionId);
  }

  #live(sessionId: string): Held | null {
    const held = this.#held.get(sessionId);
    return held !== undefined && held.expiresMs > this.#now() ? held : null;
  }

  #now(): number {
    return this.#clock().getTime();
  }
}

function infoOf(sessionId: string, { runId, token, expiresMs }: Held): LeaseInfo {
  return { sessionId, runId, token, expiresAt: new Date(expiresMs).toISOString() };
}
