import { LeaseLostError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";
import type { Lease, LeaseInfo } from "../../session/store.ts";
import { checkCount, LEASE_TTL_MS_MAX } from "./valid-arguments.ts";
import { storeClosed } from "./store-closed.ts";

/** What is told of a lease. */
export function leaseInfo(sessionId: string, { runId, token, untilMs }: StoredLease): LeaseInfo {
  return { sessionId, runId, token, expiresAt: new Date(untilMs).toISOString() };
}

/** A lease in its holder's hand. */
export function heldLease(taken: LeaseInfo, ttlMs: number, table: LeaseTable, isClosed: () => boolean): Lease {
  const { sessionId, runId, token } = taken;
  let { expiresAt } = taken;
  // On a closed store the lease runs out by itself; letting go of it late is no mistake of the holder.
  const release = async (): Promise<void> => {
    if (!isClosed()) await table.release(sessionId, token);
  };
  return {
    sessionId,
    runId,
    token,
    get expiresAt() {
      return expiresAt;
    },
    async renew(nextMs = ttlMs) {
      if (isClosed()) throw storeClosed();
      checkCount(nextMs, "ttlMs", 1, LEASE_TTL_MS_MAX);
      const renewed = await table.renew(sessionId, token, nextMs);
      if (renewed === null) throw new LeaseLostError(sessionId, token);
      expiresAt = new Date(renewed).toISOString();
    },
    release,
    [Symbol.asyncDispose]: release,
  };
}
