import type { SessionHead } from "../../session/log/fold.ts";
import { HEAD_WEIGHTS } from "../complete/head-weight.ts";
import { LruCache } from "../../internal/lru-cache.ts";

/** More than the largest page of a listing, so that listing again finds every head here. */
const CACHED_SESSIONS = 1024;

/** The sessions that were read or written last. They may be behind, and may be gone. */
export class SessionCache<Session extends { readonly head: SessionHead }> extends LruCache<string, Session> {
  constructor() {
    super(CACHED_SESSIONS, HEAD_WEIGHTS);
  }

  remember(session: Session): void {
    this.set(session.head.header.id, session);
  }

  forget(sessionId: string): void {
    this.delete(sessionId);
  }
}
