import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";

/**
 * Decides whether a bulk operation can go on after an error with one session. Returns the error if it concerns that session
 * only.
 *
 * @throws {unknown} the error itself if it is not a `SessionError` or the store is read-only; the error of `ping` if a store
 * does not answer.
 */
export async function skippableError(error: unknown, stores: readonly SessionStore[]): Promise<SessionError> {
  if (!(error instanceof SessionError) || error.code === "READ_ONLY") throw error;
  for (const store of stores) await store.ping();
  return error;
}
