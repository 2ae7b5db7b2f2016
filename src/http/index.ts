export { type ApiToken, createToken, hashToken, type TokenSource } from "./api-token.ts";
export type { Authenticate, CallerInit } from "./caller-init.ts";
export {
  type CloseOptions,
  createServer,
  type ServerInit,
  type ServerLimits,
  type SkeinServer,
} from "./create-server.ts";
export { findLocalServer, type LocalServer } from "./local-servers.ts";
export { RequestSession } from "./middleware/request-session.ts";
export {
  type RequestHandling,
  type SessionHandler,
  sessionMiddleware,
  withSession,
} from "./middleware/session-middleware.ts";
export type { SessionMiddlewareOptions } from "./middleware/session-middleware-options.ts";
export type { Caller, ServerLogger, ServerLogLine } from "./server/server-services.ts";
export { openTokenFile, type TokenFile, type TokenFileOptions } from "./token-file.ts";
export type { CallerRights } from "./caller-init.ts";
