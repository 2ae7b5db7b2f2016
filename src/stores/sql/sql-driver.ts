import type { SessionHead } from "../../session/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { DriverPurge, ListPosition } from "../../session/store-driver.ts";
import type {
  AggregateQuery,
  AggregateRow,
  Checkpoint,
  SearchHit,
  SessionPage,
  SessionQuery,
  StoreEraser,
  UndeleteOptions,
} from "../../session/store.ts";
import type { Reply } from "../rows/asking.ts";
import { RowDriver } from "../rows/row-driver.ts";
import type { Segment } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { aggregate } from "./aggregate.ts";
import { CheckpointRows } from "./checkpoint-rows.ts";
import { Removal, type RemovalSteps } from "./removal.ts";
import type { ListedQuery } from "./session-filter.ts";
import { type SearchIndex, SessionSearch } from "./session-search.ts";
import type { SqlDatabase } from "./sql-database.ts";
import { type Leftover, SqlEraser, type SqlPort, type SqlSession } from "./sql-eraser.ts";

/** How a store lists its sessions. */
export interface SqlListing {
  /** One page, newest first. */
  list(query: ListedQuery, limit: number, after: ListPosition | null): Reply<SessionHead[]>;
  count(query: ListedQuery): Reply<number>;
  /** Open sessions that were last appended to before a time, the longest idle first. */
  idleSince(before: string, limit: number): Reply<SessionHead[]>;
}

/** What an SQL store brings beside its rows. */
export interface SqlParts<Session extends SqlSession> {
  readonly port: SqlPort<Session>;
  readonly cache: SessionCache<Session>;
  readonly clock: () => Date;
  readonly listing: SqlListing;
  readonly removal: RemovalSteps;
  /** Writes the tables anew, so that nothing that was removed is left on their pages. */
  readonly rewrite: () => Promise<void>;
  readonly leftovers: () => readonly Leftover[];
  /** Null where the database can index no texts. */
  readonly index: SearchIndex | null;
}

/** The part of a `StoreDriver` that is the same wherever sessions are in tables of an SQL database. */
export abstract class SqlDriver<Session extends SqlSession> extends RowDriver<Segment, Session> {
  readonly search?: (terms: readonly SearchTerm[], query: SessionQuery) => Promise<SearchHit[]>;
  readonly eraser: StoreEraser;
  readonly #database: SqlDatabase;
  readonly #listing: SqlListing;
  readonly #removal: Removal;
  readonly #checkpoints: CheckpointRows;

  constructor(
    database: SqlDatabase,
    { port, cache, clock, listing, removal, index, rewrite, leftovers }: SqlParts<Session>,
  ) {
    super(port, cache, clock);
    this.#database = database;
    this.#listing = listing;
    this.#removal = new Removal(database, { steps: removal, cache, clock });
    this.#checkpoints = new CheckpointRows(database);
    this.eraser = new SqlEraser(database, { port, cache, removal: this.#removal, rewrite, leftovers });
    if (index === null) return;
    const search = new SessionSearch(database, { port, index, list: (...args) => this.list(...args) });
    this.search = (terms, { limit = PAGE_ITEMS_MAX, ...query }) => search.search(terms, query, limit);
  }

  async list(query: ListedQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    return { items: await this.#listing.list(query, limit, after), damaged: [] };
  }

  async count(query: SessionQuery): Promise<number> {
    return this.#listing.count(query);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return this.#listing.idleSince(before, limit);
  }

  delete(sessionId: string): Promise<boolean> {
    return this.#removal.delete(sessionId);
  }

  undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.#removal.undelete(sessionId, options);
  }

  purge(which: DriverPurge): Promise<number> {
    return this.#removal.purge(which);
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

  aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return aggregate(this.#database, query);
  }
}
