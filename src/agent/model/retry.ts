import { setTimeout } from "node:timers/promises";
import { ModelError } from "./model-error.ts";

/** How often a transient failure is retried, and with which delays. */
export interface RetryOptions {
  /** The number of attempts in total (default 4). */
  readonly attempts?: number;
  /** The first delay; each later one is twice as long (default 500). */
  readonly baseDelayMs?: number;
  /**
   * The longest delay (default 30,000). A delay that the provider asks for takes precedence, up to ten times this
   * value.
   */
  readonly delayMaxMs?: number;
}

/**
 * Retries until the call succeeds, fails permanently, or the attempts are used up. An abort ends a delay immediately.
 */
export function withRetries<T>(
  attempt: () => Promise<T>,
  { attempts = 4, baseDelayMs = 500, delayMaxMs = 30_000 }: RetryOptions,
  signal: AbortSignal,
  onRetry: (retry: { readonly attempt: number; readonly delayMs: number; readonly error: unknown }) => void,
): Promise<T> {
  const tryAgain = async (error: unknown, tried: number): Promise<T> => {
    if (tried >= attempts || signal.aborted || !(error instanceof ModelError) || !error.retryable) throw error;
    const backoff = Math.min(delayMaxMs, baseDelayMs * 2 ** (tried - 1));
    // Jitter: half of the delay is random, so that many runs that failed together do not retry together.
    const jittered = backoff / 2 + (Math.random() * backoff) / 2;
    const delayMs = Math.round(Math.max(jittered, Math.min(error.retryAfterMs ?? 0, delayMaxMs * 10)));
    onRetry({ attempt: tried + 1, delayMs, error });
    await setTimeout(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    return attempt().catch((next) => tryAgain(next, tried + 1));
  };
  return attempt().catch((error) => tryAgain(error, 1));
}
