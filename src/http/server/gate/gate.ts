import type { Admission } from "./admission.ts";
import type { Authenticator } from "./authenticator.ts";
import { HttpError } from "../http-error.ts";

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Who is let in, and how often. */
export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly allowedOrigins: readonly string[];
  readonly rate: RateLimit | null;
  readonly urlCharactersMax: number;
}

/** Looks at every request before anything is done for it. */
export class Gate {
  readonly #options: GateOptions;
  readonly #rate: RateLimiter | null;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#rate = options.rate === null ? null : new RateLimiter(options.rate);
  }

  /**
   * `path` is the path of the request as routes see it.
   *
   * @throws {HttpError} for a request that must not have come here: too long, to another host, from another site.
   */
  checkOrigin(request: Request, path: string): void {
    const { url, headers } = request;
    const { urlCharactersMax, authenticator } = this.#options;
    if (url.length > urlCharactersMax) {
      throw new HttpError("URL_TOO_LONG", `The URL is longer than ${urlCharactersMax} characters.`);
    }
    const host = headers.get("host") ?? new URL(url).host;
    // A page of another site can make a browser send requests here, under a name that it has made mean this machine.
    if (!authenticator.guarded && !LOOPBACK.has(hostnameOf(host))) {
      throw new HttpError("FOREIGN_HOST", "Without tokens, this server answers to localhost only.");
    }
    if (this.sharedWith(request) !== null) return;
    const origin = headers.get("origin");
    // What is guarded may stand behind a proxy, which knows the origin that the server has for its own pages.
    const foreign = !authenticator.guarded && origin !== null && origin !== `http://${host}`;
    if (foreign || isOfAnotherSite(request, path)) {
      throw new HttpError("FOREIGN_ORIGIN", "Pages of other sites cannot use this server.");
    }
  }

  /** Who a request comes from. @throws {HttpError} for nobody who is known, and `RATE_LIMITED`. */
  async admit(request: Request, address: string): Promise<Admission> {
    const admission = await this.#identify(request, address);
    this.#rate?.take(`user ${admission.caller.userId}`);
    return admission;
  }

  /**
   * For a request that anyone may make. What is open to all counts by itself, so that whoever guesses tokens does not take
   * the health route away from others at the same address.
   *
   * @throws {HttpError} `RATE_LIMITED`.
   */
  admitAnyone(address: string, openPath = ""): void {
    this.#rate?.take(`address ${address} ${openPath}`);
  }

  /** The origin whose pages may read the answer; null for none. */
  sharedWith({ headers }: Request): string | null {
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
 * Whether a browser says that a page of another site or of another port has sent the request. Going to a page here from
 * there, as by a link, is no such request.
 */
function isOfAnotherSite({ method, headers }: Request, path: string): boolean {
  const site = headers.get("sec-fetch-site") ?? "none";
  if (site !== "cross-site" && site !== "same-site") return false;
  return method !== "GET" || headers.get("sec-fetch-mode") !== "navigate" || isGuarded(path);
}

/** Whether a path is for callers who say who they are, and no page: what is under `/api/` and `/agui/`. */
export function isGuarded(path: string): boolean {
  return path.startsWith("/api/") || path.startsWith("/agui/");
}

/** The name of a `Host`, without its port. */
function hostnameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "");
}

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
class RateLimiter {
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
