import { setTimeout as delay } from "node:timers/promises";
import { SessionBusyError, type SessionStore } from "../../index.ts";
import { type ChatOutput, notice } from "./chat-output.ts";

const POLL_MS = 250;

/**
 * Waits while a run that was killed still has the session.
 *
 * @throws {SessionBusyError} when the run shows that it is alive: it holds the session for longer than it did, or another
 * has taken its place.
 */
export async function* untilFree(
  store: SessionStore,
  sessionId: string,
  signal: AbortSignal,
): AsyncGenerator<ChatOutput> {
  const held = await store.leaseOf(sessionId);
  if (held === null) return;
  const seconds = Math.max(1, Math.ceil((Date.parse(held.expiresAt) - Date.now()) / 1000));
  yield notice(`Another run has this session. If its program was killed, it is free in ${seconds} seconds; waiting.`);
  for (;;) {
    await delay(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    const lease = await store.leaseOf(sessionId);
    if (lease === null) return;
    if (lease.token !== held.token || lease.expiresAt !== held.expiresAt) {
      throw new SessionBusyError(sessionId, `run ${lease.runId}`);
    }
  }
}
