import { LeaseLostError } from "../../session/errors.ts";
import type { LeaseTable } from "../../session/store-driver.ts";
import type { Lease, LeaseInfo } from "../../session/store.ts";
import { checkCount, LEASE_TTL_MS_MAX } from "./valid-arguments.ts";
import { storeClosed } from "./store-closed.ts";

/** A lease in its holder's hand. */
export class HeldLease implements Lease {
  readonly sessionId: string;
  readonly runId: string;
  readonly token: number;
  readonly #ttlMs: number;
  readonly #table: LeaseTable;
  readonly #isClosed: () => boolean;
  #expiresAt: string;

  constructor(info: LeaseInfo, ttlMs: number, table: LeaseTable, isClosed: () => boolean) {
    this.sessionId = info.sessionId;
    this.runId = info.runId;
    this.token = info.token;
    this.#expiresAt = info.expiresAt;
    this.#ttlMs = ttlMs;
    this.#table = table;
    this.#isClosed = isClosed;
  }

  get expiresAt(): string {
    return this.#expiresAt;
  }

  async renew(ttlMs: number = this.#ttlMs): Promise<void> {
    if (this.#isClosed()) throw storeClosed();
    checkCount(ttlMs, "ttlMs", 1, LEASE_TTL_MS_MAX);
    const expiresAt = await this.#table.renew(this.sessionId, this.token, ttlMs);
    if (expiresAt === null) throw new LeaseLostError(this.sessionId, this.token);
    this.#expiresAt = expiresAt;
  }

  async release(): Promise<void> {
    // On a closed store the lease runs out by itself; letting go of it late is no mistake of the holder.
    if (!this.#isClosed()) await this.#table.release(this.sessionId, this.token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
