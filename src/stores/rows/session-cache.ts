import type { SessionHead } from "../../session/log/fold.ts";
import { headWeight } from "../complete/head-weight.ts";
import { LruCache } from "../../internal/lru-cache.ts";

/** More than the largest page of a listing, so listing a page again is a cache hit for every head. */
const CACHED_SESSIONS = 1024;
/** The most characters of heads to keep: about 16 MB in each of the two generations of the cache. */
const CHARACTERS_MAX = 16 * 1024 * 1024;

/** A cache of the sessions that were read or written last. A cached session may be outdated or deleted. */
export class SessionCache<Session extends { readonly head: SessionHead }> extends LruCache<string, Session> {
  constructor() {
    super(CACHED_SESSIONS, { max: CHARACTERS_MAX, of: ({ head }) => headWeight(head) });
  }

  remember(session: Session): void {
    this.set(session.head.header.id, session);
  }

  forget(sessionId: string): void {
    this.delete(sessionId);
  }
}
