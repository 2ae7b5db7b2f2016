import type { Context, MiddlewareHandler } from "hono";
import { addHeaders, answerRequest } from "../middleware/answer-request.ts";
import { partsOfRequest } from "../middleware/request-parts.ts";
import type { RequestSession } from "../middleware/request-session.ts";
import { type BoundRequest, RequestSessions } from "../middleware/request-sessions.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/**
 * The environment of an application with sessions: `new Hono<SessionEnv>()` knows what `c.get("session")` gives, and
 * `new Hono<SessionEnv<"chat">>()` what another property does.
 */
export interface SessionEnv<P extends string = "session"> {
  Variables: { [property in P]: RequestSession };
}

/**
 * Sessions for a Hono application, in `c.get("session")` or another `property`. Bound until the body of the answer was read or
 * dropped.
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
      // One that is there is named before the answer is made: to change an answer costs more than all the rest.
      const named = bound.session.isNew ? [] : bound.answer();
      for (const [name, value] of named) c.header(name, value);
      await next();
      if (named.length === 0 || named.some(([name]) => !c.res.headers.has(name))) nameSession(c, bound);
      return;
    }
    const isWhole = watchAnswers(c);
    try {
      await bound.run(next);
      if (isWhole(c.res)) {
        addHeaders(c.res.headers, bound);
        bound.end();
        return;
      }
      const response = answerRequest(bound, c.req.raw, c.res);
      // Hono would lay the headers of the one before over the new one.
      c.res = undefined;
      c.res = response;
    } catch (error) {
      bound.end();
      throw error;
    }
  };
}

/** Adds the headers that name the session; those of some responses cannot be changed, and then it is another response. */
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
 * Tells the answers that are whole when the handler has ended. A look at the body would tell too, and cost more than all
 * the rest: a server may send a text as it is as long as nobody has asked for it as a stream.
 */
function watchAnswers(c: Context): (response: Response) => boolean {
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
