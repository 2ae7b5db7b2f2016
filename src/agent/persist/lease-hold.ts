import { LeaseLostError } from "../../session/errors.ts";
import type { Guard, Lease, SessionStore } from "../../session/store.ts";

/**
 * How long a lease outlives a process that dies, if the store cannot detect that; recovery on another machine waits for
 * it.
 */
export const LEASE_MS_DEFAULT = 30_000;

/** Options for holding a lease. */
export interface HoldOptions {
  /** The duration of the lease, renewed every third of it (default 30,000). */
  readonly leaseMs?: number;
  /** Called once when another process has the lease, or may have it. */
  readonly onLost?: (error: LeaseLostError) => void;
}

/** Holds the lease of a session while a run is in progress. */
export class LeaseHold {
  readonly guard: Guard;
  /** Of two holders of a session, the later one has the larger token. */
  readonly token: number;
  readonly #lease: Lease;
  readonly #leaseMs: number;
  readonly #onLost: (error: LeaseLostError) => void;
  readonly #timer: NodeJS.Timeout;
  /** Until when no other process can hold the session, by this process's monotonic clock. */
  #untilMs: number;
  #lost: LeaseLostError | null = null;

  private constructor(lease: Lease, askedAtMs: number, leaseMs: number, onLost: (error: LeaseLostError) => void) {
    this.#lease = lease;
    this.token = lease.token;
    this.guard = { leaseToken: lease.token };
    this.#leaseMs = leaseMs;
    this.#onLost = onLost;
    this.#untilMs = askedAtMs + leaseMs;
    this.#timer = setInterval(() => {
      void this.#renew().catch(() => {});
      // A store that is unreachable may not even report an error.
      if (this.#leftMs <= 0) this.lose();
    }, leaseMs / 3);
    this.#timer.unref();
  }

  /** @throws {SessionBusyError} while anyone else holds the lease. */
  static async take(
    store: SessionStore,
    sessionId: string,
    runId: string,
    { leaseMs = LEASE_MS_DEFAULT, onLost = () => {} }: HoldOptions = {},
  ): Promise<LeaseHold> {
    // The time is taken before the request, because the moment at which the store handles it is unknown.
    const askedAtMs = performance.now();
    return new LeaseHold(await store.lease(sessionId, runId, leaseMs), askedAtMs, leaseMs, onLost);
  }

  /**
   * Null while at least a third of the lease is left by this process's clock; otherwise resolves once the lease is
   * renewed.
   *
   * @throws {LeaseLostError} if another process has the lease, or may have it.
   */
  ensure(): Promise<void> | null {
    if (this.#lost === null && this.#leftMs >= this.#leaseMs / 3) return null;
    return this.#renewOrLose();
  }

  async letGo(): Promise<void> {
    clearInterval(this.#timer);
    await this.#lease.release();
  }

  /** Stops the holder without waiting for a renewal: a refused append has shown that another process has the lease. */
  lose(): void {
    if (this.#lost !== null) return;
    clearInterval(this.#timer);
    this.#lost = new LeaseLostError(this.#lease.sessionId, this.token);
    this.#onLost(this.#lost);
  }

  get #leftMs(): number {
    return this.#untilMs - performance.now();
  }

  async #renewOrLose(): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    await this.#renew().catch(() => {});
    if (this.#lost === null && this.#leftMs < this.#leaseMs / 3) this.lose();
    if (this.#lost !== null) throw this.#lost;
  }

  /** Until the lease ends, a store that does not respond may respond to a later attempt. */
  async #renew(): Promise<void> {
    const askedAtMs = performance.now();
    try {
      await this.#lease.renew();
      this.#untilMs = askedAtMs + this.#leaseMs;
    } catch (error) {
      if (error instanceof LeaseLostError || this.#leftMs <= 0) this.lose();
      throw error;
    }
  }
}
