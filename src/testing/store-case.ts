import type { SessionStore } from "../session/store.ts";

/**
 * A requirement of a case: a second handle at the same time (`shared`), a later one (`durable`), shared leases, blobs, or a ledger for
 * budgets, alone or with one of the others.
 */
export type StoreCaseNeed =
  | "shared"
  | "durable"
  | "shared-lease"
  | "blobs"
  | "ledger"
  | "shared-ledger"
  | "durable-ledger";

/** The argument that a test runner passes to a case. */
export interface StoreCaseContext {
  /** An empty store. The runner closes it after the case; the case may have closed it before. */
  readonly store: SessionStore;
  /** Opens another handle to the same sessions, while `store` is open or after it was closed. The runner closes the handle. */
  readonly reopen?: () => Promise<SessionStore>;
}

/** One conformance case of `SessionStore`: a promise of the contract, and a test of it. */
export interface StoreCase {
  /** A unique sentence of behaviour. */
  readonly name: string;
  readonly needs?: StoreCaseNeed;
  /** Rejects if the store does not keep the promise, mostly with an `AssertionError`. */
  run(context: StoreCaseContext): Promise<void>;
}

/** Why a case must be skipped for a store, for a test runner to show; null if it must run. */
export function skipReason({ needs }: StoreCase, { store, reopen }: StoreCaseContext): string | null {
  const { shared, durable, lease, ledger, blobs } = store.capabilities;
  if (needs === undefined) return null;
  if (needs === "blobs") return blobs === true ? null : "the store keeps the data of images in entries";
  if (needs.endsWith("ledger") && ledger !== true) return "the store keeps no ledger for budgets";
  if (needs === "ledger") return null;
  if (needs.startsWith("durable") && !durable) return "the store does not outlive the process";
  if (!needs.startsWith("durable") && !shared) return "the store belongs to one process";
  if (needs === "shared-lease" && lease !== "shared") return "the store's leases hold in one process";
  return reopen === undefined ? "the runner cannot open the same sessions again" : null;
}

/** Opens another handle to the same sessions. */
export async function openAgain({ reopen }: StoreCaseContext): Promise<SessionStore> {
  if (reopen === undefined) {
    throw new Error("This case reopens the store: pass `reopen`, or skip the case if `skipReason` returns a reason.");
  }
  return reopen();
}
