import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { bindNodeRequest } from "../middleware/node-request.ts";
import { RequestSessions, takenProperty } from "../middleware/request-sessions.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/** What is needed of a Fastify request. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  readonly protocol: string;
}

/** What is needed of a Fastify reply. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
}

/** What is needed of a Fastify instance. */
export interface FastifyLike {
  hasRequestDecorator(name: string): boolean;
  decorateRequest(name: string): unknown;
  addHook(
    name: "onRequest",
    hook: (request: FastifyRequestLike, reply: FastifyReplyLike, done: (error?: Error) => void) => void,
  ): unknown;
}

/**
 * Sessions for a Fastify application, in `request.session` or another `property`: a plugin for `app.register`.
 *
 * It holds for the whole of the instance that registers it. The session is bound until the answer is complete or the
 * client has left; a handler that has not begun to answer by then keeps the session until it has answered.
 */
export const fastifySession: FastifySession = Object.assign(register, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "skein-session",
});

/** The plugin, as Fastify takes it. */
export type FastifySession = (
  instance: FastifyLike,
  options: SessionMiddlewareOptions<FastifyRequestLike>,
) => Promise<void>;

async function register(instance: FastifyLike, options: SessionMiddlewareOptions<FastifyRequestLike>): Promise<void> {
  const requests = new RequestSessions(options);
  if (instance.hasRequestDecorator(requests.property)) throw takenProperty(requests.property);
  instance.decorateRequest(requests.property);
  instance.addHook("onRequest", (request, reply, proceed) => {
    // Fastify knows which proxies to trust; Node's request is asked for the rest.
    const incoming = Object.assign(request.raw, { secure: request.protocol === "https" });
    bindNodeRequest(requests, incoming, reply.raw, request).then(
      (bound) => {
        Object.assign(request, { [requests.property]: bound.session });
        bound.run(proceed);
      },
      (error: unknown) => proceed(error as Error),
    );
  });
}
