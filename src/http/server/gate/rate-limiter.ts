import { HttpError } from "../http-error.ts";

const CALLERS_MAX = 10_000;

/** How many requests a caller may make. */
export interface RateLimit {
  readonly requestsPerSecond: number;
  /** How many may come at once. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A bucket for each caller, which fills up again as time goes by. */
export class RateLimiter {
  readonly #limit: RateLimit;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** @throws {HttpError} `RATE_LIMITED`, which says when to come again. */
  take(caller: string): void {
    const { requestsPerSecond, burst } = this.#limit;
    const atMs = this.#now();
    const bucket = this.#buckets.get(caller);
    const refilled = bucket === undefined ? burst : bucket.tokens + ((atMs - bucket.atMs) / 1000) * requestsPerSecond;
    const tokens = Math.min(burst, refilled);
    // The latest last: whoever has not come for longest is forgotten first.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { tokens: tokens < 1 ? tokens : tokens - 1, atMs });
    if (this.#buckets.size > CALLERS_MAX) this.#buckets.delete(this.#buckets.keys().next().value as string);
    if (tokens >= 1) return;
    const seconds = Math.max(1, Math.ceil((1 - tokens) / requestsPerSecond));
    throw new HttpError("RATE_LIMITED", `That were too many requests; come again in ${seconds} s.`, {
      headers: { "retry-after": String(seconds) },
    });
  }
}
