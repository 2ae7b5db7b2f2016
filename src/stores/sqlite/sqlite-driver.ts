import type { SessionHead } from "../../session/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition, StoreDriver } from "../../session/store-driver.ts";
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
import { LeaseRows } from "./lease-rows.ts";
import { Listing } from "./listing.ts";
import { Removal } from "./removal.ts";
import { SearchIndex } from "./search-index.ts";
import type { LoadedSession, SessionLog } from "./session-log.ts";
import { SessionSearch } from "./session-search.ts";
import { Settling } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import { SqlitePort } from "./sqlite-port.ts";

/** How a driver is set up. */
export interface SqliteDriverOptions {
  readonly clock: () => Date;
  /** Whether the database is a file that outlives the process and that others can open. */
  readonly file: boolean;
  /** Whether this SQLite can index texts. */
  readonly searchIndex: boolean;
  /** Whether closing the store closes the connection, or the caller does. */
  readonly ownsHandle: boolean;
}

/** Keeps sessions in an SQLite database. Every operation is one call into SQLite or one transaction. */
export class SqliteDriver extends RowDriver<Segment, LoadedSession> implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  override readonly appendsAtOnce = true;
  readonly leases: LeaseRows;
  readonly search?: (terms: readonly SearchTerm[], query: SessionQuery) => Promise<SearchHit[]>;
  readonly #handle: SqliteHandle;
  readonly #ownsHandle: boolean;
  readonly #log: SessionLog;
  readonly #listing: Listing;
  readonly #removal: Removal;
  readonly #checkpoints: CheckpointRows;

  constructor(handle: SqliteHandle, options: SqliteDriverOptions) {
    const { clock, file, searchIndex, ownsHandle } = options;
    const leases = new LeaseRows(handle, clock);
    const cache = new SessionCache<LoadedSession>();
    const port = new SqlitePort(handle, { cache, leases, clock });
    super(port, cache, clock);
    this.capabilities = capabilitiesOf(file, handle.place);
    this.#handle = handle;
    this.#ownsHandle = ownsHandle;
    const { log } = port;
    const settling = new Settling(handle);
    const index = searchIndex ? new SearchIndex(handle, settling) : null;
    const listing = new Listing(handle, { log, settling, leases });
    this.leases = leases;
    this.#log = log;
    this.#listing = listing;
    this.#removal = new Removal(handle, { cache, settling, search: index, clock });
    this.#checkpoints = new CheckpointRows(handle);
    if (index !== null) {
      const search = new SessionSearch(handle, { port, listing, index });
      this.search = (terms, { limit = PAGE_ITEMS_MAX, ...query }) => search.search(terms, query, limit);
    }
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    // One statement for all, as each takes and lets go of a lock on the file, which costs more than what it reads.
    const sessions = this.#log.loadAll(sessionIds);
    return sessionIds.map((id) => sessions.get(id)?.head ?? null);
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: this.#listing.list(query, limit, after), damaged: [] };
  }

  async count(query: SessionQuery): Promise<number> {
    return this.#listing.count(query);
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#removal.delete(sessionId);
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#removal.undelete(sessionId, options);
  }

  async purge(before: string): Promise<number> {
    return this.#removal.purge(before);
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    this.#checkpoints.save(checkpoint);
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    return this.#checkpoints.load(id);
  }

  async listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    return this.#checkpoints.list(sessionId);
  }

  async deleteCheckpoint(id: string): Promise<boolean> {
    return this.#checkpoints.delete(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#listing.idleSince(before, limit);
  }

  async aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return aggregate(this.#handle, query);
  }

  async ping(): Promise<void> {
    this.#handle.prepare("SELECT count(*) FROM sqlite_schema").get([]);
  }

  async close(): Promise<void> {
    if (!this.#ownsHandle) return;
    try {
      // Not every driver brings the write-ahead log home when it closes; whoever copies the file wants it whole.
      // It is not worth waiting for, as the last to close does it for all.
      this.#handle.exec("PRAGMA busy_timeout = 0");
      this.#handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Nothing is lost: the next one to open the database finds the log.
    }
    this.#handle.close();
  }
}

function capabilitiesOf(file: boolean, path: string): StoreCapabilities {
  return {
    durable: file,
    shared: file,
    forkByReference: true,
    search: "index",
    watch: "poll",
    lease: file ? "shared" : "process",
    aggregate: "native",
    ...(file ? { path } : {}),
  };
}
