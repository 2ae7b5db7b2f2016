import { setTimeout } from "node:timers/promises";
import { ModelError } from "./model-error.ts";

/** How often a model is asked again after a failure that passes, and how long to wait before that. */
export interface RetryOptions {
  /** How often to ask in all (default 4). */
  readonly attempts?: number;
  /** The first wait; each one after it is twice as long (default 500). */
  readonly baseDelayMs?: number;
  /** The longest wait (default 30,000). What the provider asks for counts more, up to ten times this. */
  readonly delayMaxMs?: number;
}

/** Tries until it works, fails in a way that does not pass, or was tried often enough. An abort ends a wait at once. */
export function withRetries<T>(
  attempt: () => Promise<T>,
  { attempts = 4, baseDelayMs = 500, delayMaxMs = 30_000 }: RetryOptions,
  signal: AbortSignal,
  onRetry: (retry: { readonly attempt: number; readonly delayMs: number; readonly error: unknown }) => void,
): Promise<T> {
  const tryAgain = async (error: unknown, tried: number): Promise<T> => {
    if (tried >= attempts || signal.aborted || !(error instanceof ModelError) || !error.retryable) throw error;
    const backoff = Math.min(delayMaxMs, baseDelayMs * 2 ** (tried - 1));
    // Half of the wait is random, so that many runs which failed together do not come back together.
    const jittered = backoff / 2 + (Math.random() * backoff) / 2;
    const delayMs = Math.round(Math.max(jittered, Math.min(error.retryAfterMs ?? 0, delayMaxMs * 10)));
    onRetry({ attempt: tried + 1, delayMs, error });
    await setTimeout(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    return attempt().catch((next) => tryAgain(next, tried + 1));
  };
  return attempt().catch((error) => tryAgain(error, 1));
}
