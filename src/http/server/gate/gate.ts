import type { Admission, Authenticator } from "./authenticator.ts";
import { HttpError } from "../http-error.ts";

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** How requests are checked before they reach a route. */
export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly allowedOrigins: readonly string[];
  readonly rate: RateLimit | null;
  readonly urlCharactersMax: number;
}

/** Checks every request before it reaches a route: its origin, its caller and the rate limit. */
export class Gate {
  readonly #options: GateOptions;
  readonly #rate: RateLimiter | null;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#rate = options.rate === null ? null : new RateLimiter(options.rate);
  }

  /**
   * `path` is the path as routes see it.
   *
   * @throws {HttpError} for a URL that is too long, an unknown host, or a request from a page of another site.
   */
  checkOrigin(request: Request, path: string): void {
    const { url, headers } = request;
    const { urlCharactersMax, authenticator } = this.#options;
    if (url.length > urlCharactersMax) {
      throw new HttpError("URL_TOO_LONG", `The URL is longer than ${urlCharactersMax} characters.`);
    }
    const host = headers.get("host") ?? new URL(url).host;
    // DNS rebinding: a page of another site can make its own host name resolve to this machine, and let a browser send requests
    // here.
    if (!authenticator.guarded && !LOOPBACK.has(hostnameOf(host))) {
      throw new HttpError("FOREIGN_HOST", "Without tokens, this server answers to localhost only.");
    }
    if (this.allowedOriginOf(request) !== null) return;
    const origin = headers.get("origin");
    // A server with authentication may be behind a proxy, and then does not know its own origin.
    const isForeign = !authenticator.guarded && origin !== null && origin !== `http://${host}`;
    if (isForeign || isFromAnotherSite(request, path)) {
      throw new HttpError("FOREIGN_ORIGIN", "Pages of other sites cannot use this server.");
    }
  }

  /** Authenticates the caller of a request. @throws {HttpError} for a caller without valid credentials, and `RATE_LIMITED`. */
  async admit(request: Request, address: string): Promise<Admission> {
    const admission = await this.#identify(request, address);
    this.#rate?.take(`user ${admission.caller.userId}`);
    return admission;
  }

  /**
   * Admits a request without authentication, under the rate limit of its address. Each open path has its own limit, so that
   * failed authentications do not use up the limit of the health route for others at the same address.
   *
   * @throws {HttpError} `RATE_LIMITED`.
   */
  admitAnyone(address: string, openPath = ""): void {
    this.#rate?.take(`address ${address} ${openPath}`);
  }

  /** The request's origin if its pages may read the answer; otherwise null. */
  allowedOriginOf({ headers }: Request): string | null {
    const origin = headers.get("origin");
    return origin !== null && this.#options.allowedOrigins.includes(origin) ? origin : null;
  }

  async #identify(request: Request, address: string): Promise<Admission> {
    try {
      return await this.#options.authenticator.identify(request);
    } catch (error) {
      this.admitAnyone(address);
      throw error;
    }
  }
}

/**
 * Whether the browser's headers say that a page of another site or port has sent the request. Following a link to a page here is
 * allowed.
 */
function isFromAnotherSite({ method, headers }: Request, path: string): boolean {
  const site = headers.get("sec-fetch-site") ?? "none";
  if (site !== "cross-site" && site !== "same-site") return false;
  return method !== "GET" || headers.get("sec-fetch-mode") !== "navigate" || isGuarded(path);
}

/** Whether a path requires authentication: everything under `/api/` and `/agui/`, and `/mcp`. */
export function isGuarded(path: string): boolean {
  return path.startsWith("/api/") || path.startsWith("/agui/") || path === "/mcp";
}

/** The host name of a `Host` header, without its port. */
function hostnameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "");
}

const CALLERS_MAX = 10_000;

/** The rate limit of a caller. */
export interface RateLimit {
  readonly requestsPerSecond: number;
  /** The size of the token bucket: how many requests are accepted in a burst. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A token bucket for each caller, which is refilled over time. */
class RateLimiter {
  readonly #limit: RateLimit;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** @throws {HttpError} `RATE_LIMITED`, with the delay before a retry. */
  take(caller: string): void {
    const { requestsPerSecond, burst } = this.#limit;
    const atMs = this.#now();
    const bucket = this.#buckets.get(caller);
    const refilled = bucket === undefined ? burst : bucket.tokens + ((atMs - bucket.atMs) / 1000) * requestsPerSecond;
    const tokens = Math.min(burst, refilled);
    // Moves the caller to the end of the map, so that the least recently seen caller is evicted first.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { tokens: tokens < 1 ? tokens : tokens - 1, atMs });
    if (this.#buckets.size > CALLERS_MAX) this.#buckets.delete(this.#buckets.keys().next().value as string);
    if (tokens >= 1) return;
    const seconds = Math.max(1, Math.ceil((1 - tokens) / requestsPerSecond));
    throw new HttpError("RATE_LIMITED", `Too many requests; retry in ${seconds} s.`, {
      headers: { "retry-after": String(seconds) },
    });
  }
}
