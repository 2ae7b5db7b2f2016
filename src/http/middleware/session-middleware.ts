import { answerRequest } from "./answer-request.ts";
import { partsOfRequest } from "./request-parts.ts";
import type { RequestSession } from "./request-session.ts";
import { RequestSessions } from "./request-sessions.ts";
import type { SessionMiddlewareOptions } from "./session-middleware-options.ts";

/** Answers a request that has a session. */
export type SessionHandler = (request: Request, session: RequestSession) => Response | Promise<Response>;

/** Handles requests with their sessions. */
export interface RequestHandling {
  /** Calls the handler once, with the session bound, and returns its answer; an error of the handler is rethrown. */
  handle(request: Request, handler: SessionHandler): Promise<Response>;
}

/**
 * Sessions for servers of Web-standard requests.
 *
 * - The session is the first one in header, query and cookie that is open and the caller's; otherwise a new session with a new
 *   id. The query of an anonymous visitor is used only with `anonymousQuery`.
 * - A new session is created on first use. Its answer sets the cookie; every answer with a session names it in the header.
 * - The cookie is renewed after half of its lifetime, so that a regular visitor keeps the session.
 * - The session is bound to the context until the handler has returned and the body of its answer is read or cancelled, or fails.
 */
export function sessionMiddleware(options: SessionMiddlewareOptions): RequestHandling {
  const requests = new RequestSessions(options);
  return {
    async handle(request, handler) {
      const bound = await requests.begin(partsOfRequest(request), request);
      try {
        return answerRequest(bound, request, await bound.run(() => handler(request, bound.session)));
      } catch (error) {
        bound.end();
        throw error;
      }
    },
  };
}

/** Turns a handler that takes a session into a handler of Web-standard requests. */
export function withSession(
  handler: SessionHandler,
  options: SessionMiddlewareOptions,
): (request: Request) => Promise<Response> {
  const middleware = sessionMiddleware(options);
  return (request) => middleware.handle(request, handler);
}
