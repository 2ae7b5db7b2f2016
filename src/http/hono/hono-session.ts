import type { Context, MiddlewareHandler } from "hono";
import { addHeaders, answerRequest } from "../middleware/answer-request.ts";
import { partsOfRequest } from "../middleware/request-parts.ts";
import type { RequestSession } from "../middleware/request-session.ts";
import { type BoundRequest, RequestSessions } from "../middleware/request-sessions.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/**
 * The environment of an application with sessions: `new Hono<SessionEnv>()` types `c.get("session")`, and `new
 * Hono<SessionEnv<"chat">>()` the property `chat`.
 */
export interface SessionEnv<P extends string = "session"> {
  Variables: { [property in P]: RequestSession };
}

/**
 * Sessions for a Hono application, in `c.get("session")` or another `property`. The session is bound until the body of the answer
 * is read or cancelled.
 */
export function honoSession<P extends string = "session">(
  options: SessionMiddlewareOptions<Context> & { readonly property?: P },
): MiddlewareHandler<SessionEnv<P>> {
  const requests = new RequestSessions(options);
  return async (c: Context, next) => {
    requests.checkFree(c.get(requests.property));
    const bound = await requests.begin(partsOfRequest(c.req.raw), c);
    c.set(requests.property, bound.session);
    if (!bound.isBound) {
      // The header of an existing session is set before the handler runs: changing the headers of a finished response costs more than the
      // rest of the middleware.
      const named = bound.session.isNew ? [] : bound.answer();
      for (const [name, value] of named) c.header(name, value);
      await next();
      if (named.length === 0 || named.some(([name]) => !c.res.headers.has(name))) nameSession(c, bound);
      return;
    }
    const isComplete = trackCompleteAnswers(c);
    try {
      await bound.run(next);
      if (isComplete(c.res)) {
        addHeaders(c.res.headers, bound);
        bound.end();
        return;
      }
      const response = answerRequest(bound, c.req.raw, c.res);
      // Hono would copy the headers of the old response onto the new one.
      c.res = undefined;
      c.res = response;
    } catch (error) {
      bound.end();
      throw error;
    }
  };
}

/** Adds the headers that name the session. The headers of some responses are immutable; these responses are replaced. */
function nameSession(c: Context, bound: BoundRequest): void {
  try {
    addHeaders(c.res.headers, bound);
  } catch {
    const response = new Response(c.res.body, c.res);
    addHeaders(response.headers, bound);
    c.res = undefined;
    c.res = response;
  }
}

/**
 * Returns a function that is true for a response whose body is complete when the handler returns, as from `c.json` and `c.text`.
 * Reading `response.body` would work as well, but costs more than the rest of the middleware: it turns the text, which a server
 * can send directly, into a stream.
 */
function trackCompleteAnswers(c: Context): (response: Response) => boolean {
  let latest: Response | null = null;
  const watch = <F extends (...given: never[]) => Response>(make: F): F =>
    ((...given) => {
      latest = make(...given);
      return latest;
    }) as F;
  c.json = watch(c.json);
  c.text = watch(c.text);
  return (response) => response === latest;
}
