import type { SessionContext } from "../../lifecycle/session-context.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";

/** Options of the session middleware. The names of the header and the cookie are in the manager's config. */
export interface SessionMiddlewareOptions<R = Request> {
  readonly manager: SessionManager;
  /** The context to which the session is bound while a request is handled (default: none; the handler receives the session). */
  readonly context?: SessionContext;
  /**
   * The property that holds the session on requests of Express, Fastify and Nest, and in the context of Hono (default `session`).
   * Give another name if a package such as express-session uses that one.
   */
  readonly property?: string;
  /** Returns the id of the user who calls; null or undefined for an anonymous visitor (default: everyone is anonymous). */
  user?(request: R): string | null | undefined | Promise<string | null | undefined>;
  /** The query parameter that may hold the session id (default `session_id`); null for none. */
  readonly queryName?: string | null;
  /**
   * Whether an anonymous visitor may send the session id in the query, too (default false). Everyone who opens such a link shares
   * the session.
   */
  readonly anonymousQuery?: boolean;
  /** Whether the cookie is sent over https only (default: if the request came over https). */
  readonly secure?: boolean;
  /** Whether `X-Forwarded-Proto` is trusted, which is safe only behind a proxy that sets it (default false). */
  readonly trustProxy?: boolean;
}
