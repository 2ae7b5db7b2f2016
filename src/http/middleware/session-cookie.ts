import type { SessionHeader } from "../../session/log/header.ts";
import { LruCache } from "../../internal/lru-cache.ts";

// A session that never expires is remembered for as long as browsers keep a cookie at most: 400 days.
const FOREVER_SECONDS = 34_560_000;

const COOKIES_KNOWN_MAX = 10_000;

/** When cookies were last set by this process; one that it does not know any more is set again, which does no harm. */
export class CookieTimes {
  readonly #times = new LruCache<string, number>(COOKIES_KNOWN_MAX);

  set(sessionId: string): void {
    this.#times.set(sessionId, Date.now());
  }

  /** Whether half of the life of a session's cookie has passed, as far as this process knows. */
  isOld({ id, createdAt }: Pick<SessionHeader, "id" | "createdAt">, ttlSeconds: number): boolean {
    const setMs = this.#times.get(id) ?? Date.parse(createdAt);
    return Date.now() - setMs >= cookieSeconds(ttlSeconds) * 500;
  }
}

/** How long a browser keeps the cookie of a session that may be idle for that long. */
function cookieSeconds(ttlSeconds: number): number {
  return ttlSeconds === 0 ? FOREVER_SECONDS : ttlSeconds;
}

/** The value of the `Set-Cookie` header that hands a session's id to a browser. */
export function sessionCookie(
  name: string,
  id: string,
  { ttlSeconds, secure }: { readonly ttlSeconds: number; readonly secure: boolean },
): string {
  return `${name}=${id}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${cookieSeconds(ttlSeconds)}${secure ? "; Secure" : ""}`;
}
