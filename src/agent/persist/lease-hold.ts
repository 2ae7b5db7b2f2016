import { LeaseLostError } from "../../session/errors.ts";
import type { Guard, Lease, SessionStore } from "../../session/store.ts";
import type { RunHold } from "./log-sink.ts";

/** How long a lease outlives a process that dies, where the store cannot tell; a resume elsewhere waits for that. */
const LEASE_MS = 30_000;
const RENEW_MS = LEASE_MS / 3;

/** Holds the lease of a session for as long as a run goes on. */
export class LeaseHold implements RunHold {
  readonly guard: Guard;
  readonly #lease: Lease;
  readonly #timer: NodeJS.Timeout;

  private constructor(lease: Lease) {
    this.#lease = lease;
    this.guard = { leaseToken: lease.token };
    this.#timer = setInterval(() => void this.#renew(), RENEW_MS);
    this.#timer.unref();
  }

  /** @throws {SessionBusyError} while another run holds it. */
  static async take(store: SessionStore, sessionId: string, runId: string): Promise<LeaseHold> {
    return new LeaseHold(await store.lease(sessionId, runId, LEASE_MS));
  }

  finish(): Promise<void> {
    return this.letGo();
  }

  async letGo(): Promise<void> {
    clearInterval(this.#timer);
    await this.#lease.release();
  }

  /** A lease that is lost is found out by the next append, whose guard does not hold. */
  async #renew(): Promise<void> {
    try {
      await this.#lease.renew();
    } catch (error) {
      if (error instanceof LeaseLostError) clearInterval(this.#timer);
    }
  }
}
