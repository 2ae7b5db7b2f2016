import { describeThrown } from "../agent/describe-thrown.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";

const TIMEOUT_MS_DEFAULT = 5000;
/** The longest time that a timer can wait. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Whether the store answers. */
export interface Health {
  readonly healthy: boolean;
  readonly elapsedMs: number;
  /** Why not, when it does not. */
  readonly reason: string | null;
}

/** How long to wait for an answer. */
export interface HealthOptions {
  /** Default 5,000. */
  readonly timeoutMs?: number;
}

/** Asks the store for a sign of life; one that comes too late, or not at all, is an answer too. */
export async function checkHealth(store: SessionStore, options: HealthOptions): Promise<Health> {
  const { timeoutMs = TIMEOUT_MS_DEFAULT } = options;
  checkTimeout(timeoutMs);
  const startMs = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`The store did not answer within ${timeoutMs} ms.`), timeoutMs);
  });
  const answer = (async () => store.ping())().then(() => null, describeThrown);
  const reason = await Promise.race([answer, late]);
  clearTimeout(timer);
  return { healthy: reason === null, elapsedMs: performance.now() - startMs, reason };
}

/** @throws {SessionError} `INVALID_OPTION` unless a timer can wait that long. */
export function checkTimeout(timeoutMs: number): void {
  if (typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX) return;
  throw new SessionError(
    "INVALID_OPTION",
    `timeoutMs is ${show(timeoutMs)}; give a number above 0 and up to ${TIMEOUT_MS_MAX}.`,
  );
}
