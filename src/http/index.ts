export { type ApiToken, createToken, hashToken } from "./api-token.ts";
export {
  type CloseOptions,
  createServer,
  type ServerInit,
  type ServerLimits,
  type SkeinServer,
} from "./create-server.ts";
export type { ServerLogger, ServerLogLine } from "./server/server-services.ts";
export type * from "./wire.ts";
