import { LeaseLostError } from "../../session/errors.ts";
import type { Guard, Lease, SessionStore } from "../../session/store.ts";

/** How long a lease outlives a process that dies, where the store cannot tell; recovering the run elsewhere waits for that. */
export const LEASE_MS_DEFAULT = 30_000;

/** How a lease is held. */
export interface HoldOptions {
  /** How long it is taken for, and renewed for at each third of that (default 30,000). */
  readonly leaseMs?: number;
  /** Called once when the lease is another's, or may be by now. */
  readonly onLost?: (error: LeaseLostError) => void;
}

/** Holds the lease of a session for as long as a run goes on. */
export class LeaseHold {
  readonly guard: Guard;
  /** Of two that ever held the session, the later one has the larger token. */
  readonly token: number;
  readonly #lease: Lease;
  readonly #leaseMs: number;
  readonly #onLost: (error: LeaseLostError) => void;
  readonly #timer: NodeJS.Timeout;
  /** Until when nobody else can have the session, by this process's own clock that nobody sets. */
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
      // A store that is cut off says nothing, not even that it failed.
      if (this.#leftMs <= 0) this.#lose();
    }, leaseMs / 3);
    this.#timer.unref();
  }

  /** @throws {SessionBusyError} while anyone else holds it. */
  static async take(
    store: SessionStore,
    sessionId: string,
    runId: string,
    { leaseMs = LEASE_MS_DEFAULT, onLost = () => {} }: HoldOptions = {},
  ): Promise<LeaseHold> {
    // The time counts from before the question, as nobody knows when the store took it.
    const askedAtMs = performance.now();
    return new LeaseHold(await store.lease(sessionId, runId, leaseMs), askedAtMs, leaseMs, onLost);
  }

  /**
   * Null while a third of the lease or more is left by this process's own clock; else resolves once the lease was renewed.
   *
   * @throws {LeaseLostError} when it is another's, or may be by now.
   */
  ensure(): Promise<void> | null {
    if (this.#lost === null && this.#leftMs >= this.#leaseMs / 3) return null;
    return this.#renewOrLose();
  }

  async letGo(): Promise<void> {
    clearInterval(this.#timer);
    await this.#lease.release();
  }

  get #leftMs(): number {
    return this.#untilMs - performance.now();
  }

  async #renewOrLose(): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    await this.#renew().catch(() => {});
    if (this.#lost === null && this.#leftMs < this.#leaseMs / 3) this.#lose();
    if (this.#lost !== null) throw this.#lost;
  }

  /** A store that does not answer may do so the next time, as long as the lease lasts. */
  async #renew(): Promise<void> {
    const askedAtMs = performance.now();
    try {
      await this.#lease.renew();
      this.#untilMs = askedAtMs + this.#leaseMs;
    } catch (error) {
      if (error instanceof LeaseLostError || this.#leftMs <= 0) this.#lose();
      throw error;
    }
  }

  #lose(): void {
    if (this.#lost !== null) return;
    clearInterval(this.#timer);
    this.#lost = new LeaseLostError(this.#lease.sessionId, this.token);
    this.#onLost(this.#lost);
  }
}
