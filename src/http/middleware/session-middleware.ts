import { answerRequest } from "./answer-request.ts";
import { partsOfRequest } from "./request-parts.ts";
import type { RequestSession } from "./request-session.ts";
import { RequestSessions } from "./request-sessions.ts";
import type { SessionMiddlewareOptions } from "./session-middleware-options.ts";

/** Answers a request that has a session. */
export type SessionHandler = (request: Request, session: RequestSession) => Response | Promise<Response>;

/** Gives requests their sessions. */
export interface RequestHandling {
  /** Answers a request with what the handler says, which runs once and with the session bound; what it throws passes. */
  handle(request: Request, handler: SessionHandler): Promise<Response>;
}

/**
 * Sessions for whatever serves Web-standard requests.
 *
 * - The session is the first of header, query and cookie that is an open one of the caller; else a new one, with a new id.
 *   The query of a visitor who is nobody's user counts only with `anonymousQuery`.
 * - A new session is made on first use. Its answer sets the cookie; every answer with a session names it in the header.
 * - The cookie is set anew once half of its life has passed, so that whoever keeps coming keeps the session.
 * - The session is bound to the context until the handler has ended and its answer's body was read, dropped or failed.
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

/** A handler of Web-standard requests, made of one that takes the session too. */
export function withSession(
  handler: SessionHandler,
  options: SessionMiddlewareOptions,
): (request: Request) => Promise<Response> {
  const middleware = sessionMiddleware(options);
  return (request) => middleware.handle(request, handler);
}
