import type { SessionStore } from "../session/store.ts";

/** What a case needs beside a store: a second handle at the same time, or later, or with leases in common. */
export type StoreCaseNeed = "shared" | "durable" | "shared-lease";

/** What a runner hands to a case. */
export interface StoreCaseContext {
  /** A store without sessions. The runner closes it, which does nothing when the case has done so. */
  readonly store: SessionStore;
  /** Opens the same sessions again, beside `store` or after it was closed; the runner closes what it opened. */
  readonly reopen?: () => Promise<SessionStore>;
}

/** One promise of `SessionStore`, and the program that finds out whether a store keeps it. */
export interface StoreCase {
  /** A sentence of behaviour, different from that of every other case. */
  readonly name: string;
  readonly needs?: StoreCaseNeed;
  /** Rejects, with an `AssertionError` where it can say what is wrong, when the store does not keep the promise. */
  run(context: StoreCaseContext): Promise<void>;
}

/** Why a case says nothing about a store, for a runner to show beside the case that it skips; null when it must run. */
export function skipReason({ needs }: StoreCase, { store, reopen }: StoreCaseContext): string | null {
  const { shared, durable, lease } = store.capabilities;
  if (needs === undefined) return null;
  if (needs === "durable" && !durable) return "the store does not outlive the process";
  if (needs !== "durable" && !shared) return "the store belongs to one process";
  if (needs === "shared-lease" && lease !== "shared") return "the store's leases hold in one process";
  return reopen === undefined ? "the runner cannot open the same sessions again" : null;
}

/** Opens the same sessions again. */
export async function openAgain({ reopen }: StoreCaseContext): Promise<SessionStore> {
  if (reopen === undefined) {
    throw new Error("This case opens the store again: give it a `reopen`, or skip it where `skipReason` says so.");
  }
  return reopen();
}
