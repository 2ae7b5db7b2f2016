import type { SessionHeader } from "../../session/log/header.ts";
import { LruCache } from "../../internal/lru-cache.ts";

// 400 days: the longest time that browsers keep a cookie. Used for a session that never expires.
const FOREVER_SECONDS = 34_560_000;

const COOKIES_KNOWN_MAX = 10_000;

/** When this process last set each cookie. A cookie that the cache has evicted is set again, which does no harm. */
export class CookieTimes {
  readonly #times = new LruCache<string, number>(COOKIES_KNOWN_MAX);

  set(sessionId: string): void {
    this.#times.set(sessionId, Date.now());
  }

  /** Whether half of the cookie's lifetime has passed, as far as this process knows. */
  isOld({ id, createdAt }: Pick<SessionHeader, "id" | "createdAt">, ttlSeconds: number): boolean {
    const setMs = this.#times.get(id) ?? Date.parse(createdAt);
    return Date.now() - setMs >= cookieSeconds(ttlSeconds) * 500;
  }
}

/** The lifetime of the cookie of a session that expires after `ttlSeconds` without use. */
function cookieSeconds(ttlSeconds: number): number {
  return ttlSeconds === 0 ? FOREVER_SECONDS : ttlSeconds;
}

/** The value of the `Set-Cookie` header that gives a session's id to a browser. */
export function sessionCookie(
  name: string,
  id: string,
  { ttlSeconds, secure }: { readonly ttlSeconds: number; readonly secure: boolean },
): string {
  return `${name}=${id}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${cookieSeconds(ttlSeconds)}${secure ? "; Secure" : ""}`;
}
