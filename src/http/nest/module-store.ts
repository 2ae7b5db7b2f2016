import { checkSessionConfig } from "../../lifecycle/session-config.ts";
import type { SessionStore } from "../../session/store.ts";
import { openStore } from "../../stores/open-store.ts";
import type { SessionModuleOptions } from "./session-module-options.ts";

/** A store, and whether the module has opened it and must close it. */
export class ModuleStore {
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
