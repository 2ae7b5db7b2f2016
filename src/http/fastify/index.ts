export { RequestSession } from "../middleware/request-session.ts";
export type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";
export {
  type FastifyLike,
  type FastifyReplyLike,
  type FastifyRequestLike,
  type FastifySession,
  fastifySession,
} from "./fastify-session.ts";
