import type { ServerResponse } from "node:http";
import { bindNodeRequest, type NodeRequest } from "../middleware/node-request.ts";
import type { RequestSession } from "../middleware/request-session.ts";
import { type BoundRequest, RequestSessions } from "../middleware/request-sessions.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

declare global {
  namespace Express {
    interface Request {
      /** The session of the request, after the middleware `expressSession`. */
      session: RequestSession;
    }
  }
}

/** A middleware for Express, and for every other framework that passes on the requests of Node's HTTP server. */
export type ExpressMiddleware = (
  request: NodeRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => Promise<void>;

/**
 * Sessions for an Express application, in `request.session` or another `property`; `app.use` it before or after body parsers.
 *
 * The session is bound until the answer is complete or the client disconnects. If the client disconnects before the handler
 * starts to answer, the handler keeps the session until it has answered.
 */
export function expressSession(options: SessionMiddlewareOptions<NodeRequest>): ExpressMiddleware {
  const requests = new RequestSessions(options);
  return async (request, response, next) => {
    let bound: BoundRequest;
    try {
      requests.checkFree(Reflect.get(request, requests.property));
      bound = await bindNodeRequest(requests, request, response, request);
    } catch (error) {
      next(error);
      return;
    }
    Object.assign(request, { [requests.property]: bound.session });
    bound.run(next);
  };
}
