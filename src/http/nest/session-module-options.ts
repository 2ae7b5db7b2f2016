import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { SessionManagerInit } from "../../lifecycle/manager-options.ts";
import type { SessionStore } from "../../session/store.ts";
import type { NodeRequest } from "../middleware/node-request.ts";
import type { SessionMiddlewareOptions } from "../middleware/session-middleware-options.ts";

/** The injection token of the application's store. `SessionManager` and `SessionContext` are injected by their classes. */
export const SESSION_STORE: unique symbol = Symbol.for("skein:session-store");

/** The injection token of the module's options. */
export const SESSION_MODULE_OPTIONS: unique symbol = Symbol.for("skein:session-module-options");

/** Options of the module: those of `SessionManager`, and those of the module itself. */
export interface SessionModuleOptions extends Omit<SessionManagerInit, "store"> {
  /** A store, which stays open; or the URL of a store, which is closed with the application (default: the URL in the config). */
  readonly store?: SessionStore | string;
  /** Whether the expiry of idle sessions runs while the application runs (default true). */
  readonly enableCleanupScheduler?: boolean;
  /** Options of `SessionMiddleware`. */
  readonly requests?: Omit<SessionMiddlewareOptions<NodeRequest>, "manager" | "context">;
  /** The timeout of a health check (default 5,000). */
  readonly healthTimeoutMs?: number;
}

/** The scope of the module's providers. */
export interface SessionModuleScope {
  /** Whether all modules see the providers, and not only those that import the module (default true). */
  readonly isGlobal?: boolean;
}

/** Options that a factory creates when the application starts, from providers of other modules. */
export interface SessionModuleAsyncOptions extends SessionModuleScope, Pick<ModuleMetadata, "imports"> {
  readonly inject?: FactoryProvider["inject"];
  readonly useFactory: (...injected: never[]) => SessionModuleOptions | Promise<SessionModuleOptions>;
}
