import type { SessionHead } from "../../session/log/fold.ts";
import { headWeight } from "../complete/head-weight.ts";
import { LruCache } from "../../internal/lru-cache.ts";

/** More than the largest page of a listing, so that listing again finds every head here. */
const CACHED_SESSIONS = 1024;
/** How much of what heads hold is kept: 16 MB in each half of the cache. */
const CHARACTERS_MAX = 16 * 1024 * 1024;

/** The sessions that were read or written last. They may be behind, and may be gone. */
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
