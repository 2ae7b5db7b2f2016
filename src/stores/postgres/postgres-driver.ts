import type { SessionHead } from "../../session/log/fold.ts";
import type { StoreDriver, Subscription } from "../../session/store-driver.ts";
import type { StoreCapabilities } from "../../session/store.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { SqlDriver } from "../sql/sql-driver.ts";
import { LeaseColumns } from "./lease-columns.ts";
import { Listing } from "./listing.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { PostgresPort } from "./postgres-port.ts";
import type { PostgresStoreOptions } from "./postgres-store.ts";
import { clearStatistics, leftoversOf, removalStatements, rewriteTables } from "./removal.ts";
import { SearchIndex } from "./search-index.ts";
import type { LoadedSession } from "./session-row.ts";
import { Subscriptions } from "./subscriptions.ts";

/** Keeps sessions in a schema of a PostgreSQL database. */
export class PostgresDriver extends SqlDriver<LoadedSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly leases: LeaseColumns;
  readonly subscribe?: (sessionId: string, wake: () => void) => Promise<Subscription>;
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;
  readonly #subscriptions: Subscriptions;

  constructor(handle: PostgresHandle, options: PostgresStoreOptions) {
    const { watch = "push", clock = () => new Date() } = options;
    const leases = new LeaseColumns(handle, options.clock);
    const cache = new SessionCache<LoadedSession>();
    const port = new PostgresPort({ handle, cache, leases });
    const listing = new Listing(handle, port, leases);
    const index = new SearchIndex(handle, port);
    super(handle, {
      ...{ port, cache, clock, listing, index, removal: removalStatements(handle) },
      rewrite: () => rewriteTables(handle),
      clearStatistics: () => clearStatistics(handle),
      leftovers: () => leftoversOf(handle),
    });
    const subscriptions = new Subscriptions(handle);
    this.capabilities = {
      durable: true,
      shared: true,
      forkByReference: true,
      search: "index",
      watch,
      lease: "shared",
    };
    this.leases = leases;
    this.#handle = handle;
    this.#port = port;
    this.#subscriptions = subscriptions;
    if (watch === "push") this.subscribe = (sessionId, wake) => subscriptions.subscribe(sessionId, wake);
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    return this.#port.heads(sessionIds);
  }

  async ping(): Promise<void> {
    await this.#handle.write(`SELECT version FROM ${this.#handle.schema}.skein_schema`);
  }

  async close(): Promise<void> {
    await this.#subscriptions.close();
    await this.#handle.close();
  }
}
