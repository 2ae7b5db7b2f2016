import { describeThrown } from "../agent/describe-thrown.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";

const TIMEOUT_MS_DEFAULT = 5000;
/** The longest delay of a timer. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The health of a store. */
export interface Health {
  readonly healthy: boolean;
  readonly elapsedMs: number;
  /** Why the store is not healthy, or null. */
  readonly reason: string | null;
}

/** Options of a health check. */
export interface HealthOptions {
  /** Default 5,000. */
  readonly timeoutMs?: number;
}

/** Pings the store with a timeout; an error or a timeout is a result, too. */
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

/** @throws {SessionError} `INVALID_OPTION` unless it is a valid delay of a timer. */
export function checkTimeout(timeoutMs: number): void {
  if (typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX) return;
  throw new SessionError(
    "INVALID_OPTION",
    `timeoutMs is ${show(timeoutMs)}; give a number above 0 and up to ${TIMEOUT_MS_MAX}.`,
  );
}
