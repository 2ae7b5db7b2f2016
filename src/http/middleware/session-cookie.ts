// A session that never expires is remembered for as long as browsers keep a cookie at most: 400 days.
const FOREVER_SECONDS = 34_560_000;

/** The value of the `Set-Cookie` header that hands a session's id to a browser. */
export function sessionCookie(
  name: string,
  id: string,
  { ttlSeconds, secure }: { readonly ttlSeconds: number; readonly secure: boolean },
): string {
  const maxAge = ttlSeconds === 0 ? FOREVER_SECONDS : ttlSeconds;
  return `${name}=${id}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${maxAge}${secure ? "; Secure" : ""}`;
}
