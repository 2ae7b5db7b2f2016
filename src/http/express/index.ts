export type { NodeRequest } from "../middleware/node-request.ts";
export { RequestSession } from "../middleware/request-session.ts";
export type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";
export { type ExpressMiddleware, expressSession } from "./express-session.ts";
