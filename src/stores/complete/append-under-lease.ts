import type { CheckedDraft } from "../../session/draft.ts";
import { LeaseLostError, SessionConflictError } from "../../session/errors.ts";
import type { StoreDriver } from "../../session/store-driver.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import type { ProcessLeases } from "./process-leases.ts";

const NO_SUCH_VERSION = -1;

/**
 * An append whose lease this process keeps, so that the driver cannot check its token.
 *
 * @throws {LeaseLostError} when the token is not the live one, unless the append only repeats what is stored.
 */
export async function appendUnderLease(
  driver: StoreDriver,
  leases: ProcessLeases,
  sessionId: string,
  drafts: readonly CheckedDraft[],
  options: AppendOptions,
): Promise<AppendResult> {
  const { leaseToken, ...others } = options.guard ?? {};
  // The driver sees no token, and takes this word for it.
  const guard = { ...others, holds: true } as const;
  if (leaseToken === undefined || leases.tokenOf(sessionId) === leaseToken) {
    return driver.append(sessionId, drafts, { ...options, guard });
  }
  try {
    // A version that no session has lets nothing through but an exact retry, as a driver with leases of its own would.
    return await driver.append(sessionId, drafts, { ...options, guard, expectedVersion: NO_SUCH_VERSION });
  } catch (error) {
    throw error instanceof SessionConflictError ? new LeaseLostError(sessionId, leaseToken) : error;
  }
}
