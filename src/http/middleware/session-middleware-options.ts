import type { SessionContext } from "../../lifecycle/session-context.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";

/** How requests get their sessions. The names of the header and the cookie are those of the manager's config. */
export interface SessionMiddlewareOptions<R = Request> {
  readonly manager: SessionManager;
  /** Where the session of a request is bound while it is handled (default: nowhere; the handler is given it). */
  readonly context?: SessionContext;
  /**
   * What the session is called on requests of Express, Fastify and Nest, and in the context of Hono (default `session`). Give
   * another where a package such as express-session has that one.
   */
  readonly property?: string;
  /** Who calls: a user's id; null or undefined for a visitor who is nobody's user (default: everyone is one). */
  user?(request: R): string | null | undefined | Promise<string | null | undefined>;
  /** The parameter of the query that may name the session (default `session_id`); null for none. */
  readonly queryName?: string | null;
  /**
   * Whether a visitor who is nobody's user may name their session in the query, too (default false). Whoever has such a link
   * is in the same session, and so is everyone they send it to.
   */
  readonly anonymousQuery?: boolean;
  /** Whether the cookie is for https only (default: when the request came by https). */
  readonly secure?: boolean;
  /** Whether `X-Forwarded-Proto` is believed, which only a proxy in front of the program makes safe (default false). */
  readonly trustProxy?: boolean;
}
