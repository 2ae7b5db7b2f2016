export { SessionContext } from "../../lifecycle/session-context.ts";
export { SessionManager } from "../../lifecycle/session-manager.ts";
export { RequestSession } from "../middleware/request-session.ts";
export { type SessionHealth, SessionHealthIndicator } from "./session-health-indicator.ts";
export { SessionMiddleware } from "./session-middleware.ts";
export { SessionModule } from "./session-module.ts";
export {
  SESSION_MODULE_OPTIONS,
  SESSION_STORE,
  type SessionModuleAsyncOptions,
  type SessionModuleOptions,
  type SessionModuleScope,
} from "./session-module-options.ts";
