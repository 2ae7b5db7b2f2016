import type { ApiToken } from "../api-token.ts";
import { HttpError } from "./http-error.ts";
import { type RateLimit, RateLimiter } from "./rate-limiter.ts";
import { ALL_RIGHTS, type Caller } from "./server-services.ts";
import { TokenTable } from "./token-table.ts";

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
const LOCAL: Caller = Object.freeze({ userId: "local", admin: true, may: ALL_RIGHTS });

/** Who is let in, and how often. */
export interface GateOptions {
  readonly tokens: readonly ApiToken[] | null;
  readonly allowedOrigins: readonly string[];
  readonly rate: RateLimit | null;
  readonly urlCharactersMax: number;
}

/** Looks at every request before anything is done for it. */
export class Gate {
  readonly #options: GateOptions;
  readonly #tokens: TokenTable | null;
  readonly #rate: RateLimiter | null;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#tokens = options.tokens === null ? null : new TokenTable(options.tokens);
    this.#rate = options.rate === null ? null : new RateLimiter(options.rate);
  }

  /** @throws {HttpError} for a request that must not have come here: too long, to another host, from another site. */
  checkOrigin({ method, url, headers }: Request): void {
    const { urlCharactersMax } = this.#options;
    if (url.length > urlCharactersMax) {
      throw new HttpError("URL_TOO_LONG", `The URL is longer than ${urlCharactersMax} characters.`);
    }
    if (this.#tokens !== null) return;
    // A page of another site can make a browser send requests here, under a name that it has made mean this machine.
    const host = headers.get("host") ?? new URL(url).host;
    if (!LOOPBACK.has(hostnameOf(host))) {
      throw new HttpError("FOREIGN_HOST", "Without tokens, this server answers to localhost only.");
    }
    const origin = headers.get("origin");
    const site = headers.get("sec-fetch-site") ?? "none";
    const changes = method !== "GET" && method !== "HEAD";
    const foreign = origin !== null ? !this.#isAllowed(origin, host) : changes && site.endsWith("-site");
    if (foreign) throw new HttpError("FOREIGN_ORIGIN", "Pages of other sites cannot use this server.");
  }

  /** Who a request comes from. @throws {HttpError} `UNAUTHORIZED`, `TOKEN_EXPIRED` or `RATE_LIMITED`. */
  admit({ headers }: Request, address: string): Caller {
    const caller = this.#identify(headers, address);
    this.#rate?.take(`user ${caller.userId}`);
    return caller;
  }

  /** For a request that anyone may make. @throws {HttpError} `RATE_LIMITED`. */
  admitAnyone(address: string): void {
    this.#rate?.take(`address ${address}`);
  }

  /** The origin whose pages may read the answer; null for none. */
  sharedWith({ headers }: Request): string | null {
    const origin = headers.get("origin");
    return origin !== null && this.#options.allowedOrigins.includes(origin) ? origin : null;
  }

  #identify(headers: Headers, address: string): Caller {
    if (this.#tokens === null) return LOCAL;
    try {
      return this.#tokens.callerOf(headers.get("authorization"));
    } catch (error) {
      this.admitAnyone(address);
      throw error;
    }
  }

  #isAllowed(origin: string, host: string): boolean {
    return origin === `http://${host}` || this.#options.allowedOrigins.includes(origin);
  }
}

/** The name of a `Host`, without its port. */
function hostnameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "");
}
