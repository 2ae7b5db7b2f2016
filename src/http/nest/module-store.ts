import { checkSessionConfig } from "../../lifecycle/session-config.ts";
import type { SessionStore } from "../../session/store.ts";
import { openStore } from "../../stores/open-store.ts";
import type { SessionModuleOptions } from "./session-module-options.ts";

/** A store, and whether it is the module's own to close. */
export class ModuleStore {
  readonly store: SessionStore;
  readonly #own: boolean;

  constructor(store: SessionStore, own: boolean) {
    this.store = store;
    this.#own = own;
  }

  /** The store that the options name. */
  static async open({ store, config }: SessionModuleOptions): Promise<ModuleStore> {
    // Before anything is opened that nobody would close.
    const { store: url } = checkSessionConfig(config);
    if (store !== undefined && typeof store !== "string") return new ModuleStore(store, false);
    return new ModuleStore(await openStore(store ?? url), true);
  }

  /** Closes it if the module has opened it. */
  async close(): Promise<void> {
    if (this.#own) await this.store.close();
  }
}
