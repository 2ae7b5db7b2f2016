import { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";

/**
 * The refusal that one of many sessions met, so that the work can go on with the others.
 *
 * @throws {unknown} the error itself when there is no point in going on: it is no refusal, or a
 * store takes no writes or does not answer.
 */
export async function refusalOf(error: unknown, stores: readonly SessionStore[]): Promise<SessionError> {
  if (!(error instanceof SessionError) || error.code === "READ_ONLY") throw error;
  for (const store of stores) await store.ping();
  return error;
}
