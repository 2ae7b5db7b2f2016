import type { SessionHead } from "../../session/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition, StoreDriver, Subscription } from "../../session/store-driver.ts";
import type {
  AggregateQuery,
  AggregateRow,
  Checkpoint,
  SearchHit,
  SessionPage,
  SessionQuery,
  StoreCapabilities,
  UndeleteOptions,
} from "../../session/store.ts";
import { RowDriver } from "../rows/row-driver.ts";
import type { Segment } from "../rows/segments.ts";
import { SessionCache } from "../rows/session-cache.ts";
import { aggregate } from "./aggregate.ts";
import { CheckpointRows } from "./checkpoint-rows.ts";
import { LeaseColumns } from "./lease-columns.ts";
import { Listing } from "./listing.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { PostgresPort } from "./postgres-port.ts";
import { Removal } from "./removal.ts";
import { SearchIndex } from "./search-index.ts";
import type { LoadedSession } from "./session-row.ts";
import { SessionSearch } from "./session-search.ts";
import { Subscriptions } from "./subscriptions.ts";

/** How a driver is set up. */
export interface PostgresDriverOptions {
  /** Null for the system's clock, and the database's where leases are concerned. */
  readonly clock: (() => Date) | null;
  readonly watch: "push" | "poll";
}

/** Keeps sessions in a schema of a PostgreSQL database. */
export class PostgresDriver extends RowDriver<Segment, LoadedSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly leases: LeaseColumns;
  readonly subscribe?: (sessionId: string, wake: () => void) => Promise<Subscription>;
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: CheckpointRows;
  readonly #search: SessionSearch;
  readonly #subscriptions: Subscriptions;

  constructor(handle: PostgresHandle, options: PostgresDriverOptions) {
    const clock = options.clock ?? (() => new Date());
    const leases = new LeaseColumns(handle, options.clock);
    const cache = new SessionCache<LoadedSession>();
    const port = new PostgresPort({ handle, cache, leases });
    super(port, cache, clock);
    const listing = new Listing(handle, port, leases);
    const subscriptions = new Subscriptions(handle);
    this.capabilities = capabilitiesOf(options.watch);
    this.leases = leases;
    this.#handle = handle;
    this.#port = port;
    this.#listing = listing;
    this.#removal = new Removal(handle, cache, clock);
    this.#checkpoints = new CheckpointRows(handle);
    this.#search = new SessionSearch(handle, { port, listing, index: new SearchIndex(handle) });
    this.#subscriptions = subscriptions;
    if (options.watch === "push") this.subscribe = (sessionId, wake) => subscriptions.subscribe(sessionId, wake);
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const sessions = await this.#port.loadAll(sessionIds);
    return sessionIds.map((id) => sessions.get(id)?.head ?? null);
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: await this.#listing.list(query, limit, after), damaged: [] };
  }

  count(query: SessionQuery): Promise<number> {
    return this.#listing.count(query);
  }

  search(terms: readonly SearchTerm[], { limit = PAGE_ITEMS_MAX, ...query }: SessionQuery): Promise<SearchHit[]> {
    return this.#search.search(terms, query, limit);
  }

  delete(sessionId: string): Promise<boolean> {
    return this.#removal.delete(sessionId);
  }

  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#removal.undelete(sessionId, options);
  }

  purge(before: string): Promise<number> {
    return this.#removal.purge(before);
  }

  saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#checkpoints.save(checkpoint);
  }

  loadCheckpoint(id: string): Promise<Checkpoint | null> {
    return this.#checkpoints.load(id);
  }

  listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    return this.#checkpoints.list(sessionId);
  }

  deleteCheckpoint(id: string): Promise<boolean> {
    return this.#checkpoints.delete(id);
  }

  listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#listing.idleSince(before, limit);
  }

  aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return aggregate(this.#handle, query);
  }

  async ping(): Promise<void> {
    await this.#handle.write(`SELECT version FROM ${this.#handle.schema}.skein_schema`);
  }

  async close(): Promise<void> {
    await this.#subscriptions.close();
    await this.#handle.close();
  }
}

function capabilitiesOf(watch: "push" | "poll"): StoreCapabilities {
  return {
    durable: true,
    shared: true,
    forkByReference: true,
    search: "index",
    watch,
    lease: "shared",
    aggregate: "native",
  };
}
