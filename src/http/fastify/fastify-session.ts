import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { bindNodeRequest } from "../middleware/node-request.ts";
import { RequestSessions, takenProperty } from "../middleware/request-sessions.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/** The part of a Fastify request that the plugin uses. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  readonly protocol: string;
}

/** The part of a Fastify reply that the plugin uses. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
}

/** The part of a Fastify instance that the plugin uses. */
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
 * It applies to the whole instance that registers it. The session is bound until the answer is complete or the client
 * disconnects. If the client disconnects before the handler starts to answer, the handler keeps the session until it has
 * answered.
 */
export const fastifySession: FastifySession = Object.assign(register, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "skein-session",
});

/** The type of the plugin. */
export type FastifySession = (
  instance: FastifyLike,
  options: SessionMiddlewareOptions<FastifyRequestLike>,
) => Promise<void>;

async function register(instance: FastifyLike, options: SessionMiddlewareOptions<FastifyRequestLike>): Promise<void> {
  const requests = new RequestSessions(options);
  if (instance.hasRequestDecorator(requests.property)) throw takenProperty(requests.property);
  instance.decorateRequest(requests.property);
  instance.addHook("onRequest", (request, reply, proceed) => {
    // `request.protocol` follows Fastify's rules for trusted proxies; the rest is read from Node's request.
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
