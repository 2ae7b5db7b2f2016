import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { MANAGER_KEYS } from "../../lifecycle/manager-options.ts";
import {
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Provider,
} from "@nestjs/common";
import { type SessionConfig, checkSessionConfig } from "../../lifecycle/session-config.ts";
import { SessionContext } from "../../lifecycle/session-context.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { SessionError, show } from "../../session/errors.ts";
import { SessionHealthIndicator } from "./session-health-indicator.ts";
import {
  SESSION_MODULE_OPTIONS,
  SESSION_STORE,
  type SessionModuleAsyncOptions,
  type SessionModuleOptions,
  type SessionModuleScope,
} from "./session-module-options.ts";
import type { SessionStore } from "../../session/store.ts";
import { openStore } from "../../stores/open-store.ts";

/** A store, and whether the module has opened it and must close it. */
class ModuleStore {
  readonly store: SessionStore;
  readonly #isOwn: boolean;

  constructor(store: SessionStore, isOwn: boolean) {
    this.store = store;
    this.#isOwn = isOwn;
  }

  /** Opens the store that the options name. */
  static async open({ store, config }: SessionModuleOptions): Promise<ModuleStore> {
    // Checked first: an error after the store is opened would leave it open.
    const { store: url } = checkSessionConfig(config);
    if (store !== undefined && typeof store !== "string") return new ModuleStore(store, false);
    return new ModuleStore(await openStore(store ?? url), true);
  }

  /** Closes the store if the module has opened it. */
  async close(): Promise<void> {
    if (this.#isOwn) await this.store.close();
  }
}

/**
 * Sessions for a Nest application.
 *
 * - Provides the store (`SESSION_STORE`), the `SessionManager`, the `SessionContext` and a `SessionHealthIndicator`.
 * - Expires idle sessions from bootstrap to shutdown, unless `enableCleanupScheduler` is false.
 * - On shutdown, after the last request: waits for the background work of closed sessions, and closes the store if the module has
 *   opened it.
 */
export class SessionModule implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #manager: SessionManager;
  readonly #opened: ModuleStore;
  readonly #sweeps: boolean;

  /** Called by Nest, which injects the parameters. */
  constructor(manager: SessionManager, opened: ModuleStore, { enableCleanupScheduler = true }: SessionModuleOptions) {
    this.#manager = manager;
    this.#opened = opened;
    this.#sweeps = enableCleanupScheduler && manager.config.enabled;
  }

  /** Configures the module with options. */
  static forRoot({ isGlobal = true, ...options }: SessionModuleOptions & SessionModuleScope = {}): DynamicModule {
    return moduleOf({ provide: SESSION_MODULE_OPTIONS, useValue: checkModuleOptions(options) }, { isGlobal });
  }

  /** Configures the module with options that a factory creates when the application starts. */
  static forRootAsync({
    isGlobal = true,
    imports = [],
    inject = [],
    useFactory,
  }: SessionModuleAsyncOptions): DynamicModule {
    if (typeof useFactory !== "function") {
      throw new SessionError(
        "INVALID_OPTION",
        `useFactory is ${show(useFactory)}; give a function that makes the options.`,
      );
    }
    const make = async (...injected: never[]): Promise<SessionModuleOptions> =>
      checkModuleOptions(await useFactory(...injected));
    return { ...moduleOf({ provide: SESSION_MODULE_OPTIONS, inject, useFactory: make }, { isGlobal }), imports };
  }

  /** Configures the module with a session config, whose `store` is opened and closed with the application, and other options. */
  static configure(
    config: Partial<SessionConfig> = {},
    options: Omit<SessionModuleOptions, "config"> & SessionModuleScope = {},
  ): DynamicModule {
    return SessionModule.forRoot({ ...options, config });
  }

  /** Configures the module for tests of an application: in memory, and without timers. */
  static stub(options: Omit<SessionModuleOptions, "store" | "enableCleanupScheduler"> = {}): DynamicModule {
    return SessionModule.forRoot({ ...options, store: "memory:", enableCleanupScheduler: false });
  }

  /** Starts the expiry of idle sessions. */
  onApplicationBootstrap(): void {
    if (this.#sweeps) this.#manager.start();
  }

  /** Ends background work, and closes the store if the module has opened it. */
  async onApplicationShutdown(): Promise<void> {
    await this.#manager[Symbol.asyncDispose]();
    await this.#opened.close();
  }
}

Module({})(SessionModule);
for (const [index, token] of [SessionManager, ModuleStore, SESSION_MODULE_OPTIONS].entries()) {
  Inject(token)(SessionModule, undefined, index);
}

function moduleOf(options: Provider, { isGlobal }: Required<SessionModuleScope>): DynamicModule {
  return {
    module: SessionModule,
    global: isGlobal,
    providers: [
      options,
      { provide: ModuleStore, inject: [SESSION_MODULE_OPTIONS], useFactory: ModuleStore.open },
      { provide: SESSION_STORE, inject: [ModuleStore], useFactory: ({ store }: ModuleStore) => store },
      {
        provide: SessionManager,
        inject: [SESSION_STORE, SESSION_MODULE_OPTIONS],
        useFactory: (store: SessionManager["store"], init: SessionModuleOptions) => {
          const { requests: _requests, enableCleanupScheduler: _sweeps, healthTimeoutMs: _health, ...rest } = init;
          return new SessionManager({ ...rest, store });
        },
      },
      {
        provide: SessionContext,
        inject: [SessionManager],
        useFactory: (manager: SessionManager) => new SessionContext(manager),
      },
      {
        provide: SessionHealthIndicator,
        inject: [SessionManager, SESSION_MODULE_OPTIONS],
        useFactory: (manager: SessionManager, { healthTimeoutMs }: SessionModuleOptions) =>
          new SessionHealthIndicator(manager, healthTimeoutMs === undefined ? {} : { timeoutMs: healthTimeoutMs }),
      },
    ],
    exports: [SESSION_MODULE_OPTIONS, SESSION_STORE, SessionManager, SessionContext, SessionHealthIndicator],
  };
}

const MODULE_KEYS: KeysOf<SessionModuleOptions> = {
  ...MANAGER_KEYS,
  enableCleanupScheduler: true,
  requests: true,
  healthTimeoutMs: true,
};

/** @throws {SessionError} `INVALID_OPTION` for an unknown key; the manager and the middleware check the values. */
function checkModuleOptions(options: SessionModuleOptions): SessionModuleOptions {
  checkOptionsOf(options, MODULE_KEYS, "SessionModule");
  return options;
}
