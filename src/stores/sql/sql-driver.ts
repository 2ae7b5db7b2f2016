import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition, MaybePromise, SessionListing } from "../../session/store-driver.ts";
import type { SearchHit, SessionQuery, StoreEraser } from "../../session/store.ts";
import { searchByScan } from "../complete/search-by-scan.ts";
import { readRange } from "../complete/valid-arguments.ts";

import { RowDriver, type RowParts } from "../rows/row-driver.ts";
import type { Segment } from "../rows/segments.ts";
import { BlobRows } from "./blob-rows.ts";
import { CheckpointRows } from "./checkpoint-rows.ts";
import { LedgerRows } from "./ledger-rows.ts";
import { Removal, type RemovalStatements } from "./removal.ts";
import type { ListedQuery } from "./session-filter.ts";
import { candidatesFor, type SearchIndex } from "./session-search.ts";
import type { SqlDatabase } from "./sql-database.ts";
import { SqlEraser } from "./sql-eraser.ts";
import type { SqlPort, SqlSession } from "./sql-port.ts";

/** The listing of an SQL store, which can also be restricted to given keys. */
export interface SqlListing extends SessionListing {
  list(query: ListedQuery, limit: number, after: ListPosition | null): MaybePromise<SessionHead[]>;
}

/** A count of rows that should not exist, such as entries without a session. */
export interface LeftoverCount {
  /** The unit of the count, as in `rows of entries`. */
  readonly what: string;
  readonly sql: string;
}

/** The options of an `SqlDriver`. */
export interface SqlParts<Session extends SqlSession>
  extends Omit<RowParts<Segment, Session>, "port" | "removal" | "checkpoints"> {
  readonly port: SqlPort<Session>;
  readonly listing: SqlListing;
  readonly removal: RemovalStatements;
  /** Rewrites the tables, so that no deleted bytes are left on their pages. */
  readonly rewrite: () => Promise<void>;
  /** Removes the planner statistics, which can contain values of the tables. Leave it out if the database keeps none. */
  readonly clearStatistics?: () => Promise<void>;
  /** The counts of rows that belong to no session. */
  readonly leftovers: () => readonly LeftoverCount[];
  /** Null if the database cannot index texts. */
  readonly index: SearchIndex | null;
}

/** The part of a `StoreDriver` that all stores on an SQL database share. */
export abstract class SqlDriver<Session extends SqlSession> extends RowDriver<Segment, Session> {
  readonly search?: (terms: readonly SearchTerm[], query: SessionQuery) => Promise<SearchHit[]>;
  readonly eraser: StoreEraser;
  readonly ledger: LedgerRows;
  readonly blobs: BlobRows;

  constructor(database: SqlDatabase, parts: SqlParts<Session>) {
    const { cache, clock, index, listing } = parts;
    const removal = new Removal(database, { statements: parts.removal, cache, clock });
    const checkpoints = new CheckpointRows(database);
    super({ ...parts, removal, checkpoints });
    this.eraser = new SqlEraser(database, { ...parts, removal, checkpoints });
    this.ledger = new LedgerRows(database);
    this.blobs = new BlobRows(database, clock);
    if (index === null) return;
    const read = (sessionId: string): AsyncIterable<Entry> => this.read(sessionId, readRange({}));
    this.search = (terms, { limit = PAGE_ITEMS_MAX, ...query }) =>
      searchByScan(candidatesFor(database, { index, listing }, terms, query), read, terms, limit);
  }
}
