// A session that never expires is remembered for as long as browsers keep a cookie at most: 400 days.
const FOREVER_SECONDS = 34_560_000;

/** How long a browser keeps the cookie of a session that may be idle for that long. */
export function cookieSeconds(ttlSeconds: number): number {
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
