import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { SessionManagerInit } from "../../lifecycle/manager-options.ts";
import type { SessionStore } from "../../session/store.ts";
import type { NodeRequest } from "../middleware/node-request.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/** What the store of the application is injected by; manager and context are injected by their classes. */
export const SESSION_STORE: unique symbol = Symbol.for("skein:session-store");

/** What the options of the module are injected by. */
export const SESSION_MODULE_OPTIONS: unique symbol = Symbol.for("skein:session-module-options");

/** How an application keeps sessions: what a `SessionManager` takes, and what the module does around it. */
export interface SessionModuleOptions extends Omit<SessionManagerInit, "store"> {
  /** A store, which stays open; or the URL of one, which is closed with the application (default: the config's). */
  readonly store?: SessionStore | string;
  /** Whether idle sessions are looked for while the application runs (default true). */
  readonly enableCleanupScheduler?: boolean;
  /** How requests get their sessions, where `SessionMiddleware` is applied. */
  readonly requests?: Omit<SessionMiddlewareOptions<NodeRequest>, "manager" | "context">;
  /** How long a health check waits for the store (default 5,000). */
  readonly healthTimeoutMs?: number;
}

/** Who sees what the module provides. */
export interface SessionModuleScope {
  /** Whether all modules do, and not only those that import it (default true). */
  readonly isGlobal?: boolean;
}

/** Options that are made when the application starts, of what other modules provide. */
export interface SessionModuleAsyncOptions extends SessionModuleScope, Pick<ModuleMetadata, "imports"> {
  readonly inject?: FactoryProvider["inject"];
  readonly useFactory: (...injected: never[]) => SessionModuleOptions | Promise<SessionModuleOptions>;
}
