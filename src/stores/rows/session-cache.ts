import type { SessionHead } from "../../session/fold.ts";
import { HEAD_WEIGHTS } from "../complete/head-weight.ts";
import { LruCache } from "../../internal/lru-cache.ts";

/** More than the largest page of a listing, so that listing again finds every head here. */
const CACHED_SESSIONS = 1024;

/** The sessions that were read or written last. They may be behind, and may be gone. */
export class SessionCache<Session extends { readonly head: SessionHead }> {
  readonly #sessions = new LruCache<string, Session>(CACHED_SESSIONS, HEAD_WEIGHTS);

  get(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  remember(session: Session): void {
    this.#sessions.set(session.head.header.id, session);
  }

  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }
}
