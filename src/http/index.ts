export { type ApiToken, createToken, hashToken } from "./api-token.ts";
export {
  type CloseOptions,
  createServer,
  type ServerInit,
  type ServerLimits,
  type ServerPlace,
  type SkeinServer,
} from "./create-server.ts";
export { RequestSession } from "./middleware/request-session.ts";
export {
  type RequestHandling,
  type SessionHandler,
  sessionMiddleware,
  withSession,
} from "./middleware/session-middleware.ts";
export type { SessionMiddlewareOptions } from "./middleware/session-middleware-options.ts";
export type { ServerLogger, ServerLogLine } from "./server/server-services.ts";
export type * from "./wire.ts";
