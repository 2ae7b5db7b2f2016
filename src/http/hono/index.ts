export { RequestSession } from "../middleware/request-session.ts";
export type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";
export { honoSession, type SessionEnv } from "./hono-session.ts";
