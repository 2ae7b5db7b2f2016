import { type HoldOptions, LeaseHold } from "../agent/persist/lease-hold.ts";
import { untilAborted } from "../agent/follow-abort.ts";
import { SessionBusyError } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";

const POLL_FIRST_MS = 20;
const POLL_LAST_MS = 500;

/** Whether, and how long, to wait for a session that another run holds. */
export interface Waiting {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly hold: HoldOptions;
}

/**
 * Acquires the lease of a session. @throws {SessionBusyError} while another run holds it, immediately or after the
 * wait.
 */
export async function takeSession(
  store: SessionStore,
  sessionId: string,
  runId: string,
  { waitMs, signal, hold }: Waiting,
): Promise<LeaseHold> {
  const deadlineMs = performance.now() + waitMs;
  for (let pauseMs = POLL_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_LAST_MS)) {
    try {
      return await LeaseHold.take(store, sessionId, runId, hold);
    } catch (error) {
      const leftMs = deadlineMs - performance.now();
      if (!(error instanceof SessionBusyError) || leftMs <= 0) throw error;
      await pause(Math.min(pauseMs, leftMs), signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await untilAborted(over, signal);
  } finally {
    clearTimeout(timer);
  }
}
