import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import type { SearchHit, SessionQuery, StoreEraser } from "../../session/store.ts";
import { searchByScan } from "../complete/search-by-scan.ts";
import { readRange } from "../complete/valid-arguments.ts";
import type { Reply } from "../rows/asking.ts";
import { RowDriver, type RowParts } from "../rows/row-driver.ts";
import type { Segment } from "../rows/segments.ts";
import { CheckpointRows } from "./checkpoint-rows.ts";
import { Removal, type RemovalSteps } from "./removal.ts";
import type { ListedQuery } from "./session-filter.ts";
import { candidatesFor, type SearchIndex } from "./session-search.ts";
import type { SqlDatabase } from "./sql-database.ts";
import { type Leftover, SqlEraser, type SqlPort, type SqlSession } from "./sql-eraser.ts";

/** How an SQL store lists its sessions, also some of them only. */
export interface SqlListing extends SessionListing {
  list(query: ListedQuery, limit: number, after: ListPosition | null): Reply<SessionHead[]>;
}

/** What an SQL store brings beside its rows. */
export interface SqlParts<Session extends SqlSession>
  extends Omit<RowParts<Segment, Session>, "port" | "removal" | "checkpoints"> {
  readonly port: SqlPort<Session>;
  readonly listing: SqlListing;
  readonly removal: RemovalSteps;
  /** Writes the tables anew, so that nothing that was removed is left on their pages. */
  readonly rewrite: () => Promise<void>;
  /** Removes what the database has sampled of the tables' contents to plan queries; left out where it samples nothing. */
  readonly clearStatistics?: () => Promise<void>;
  /** What there may be that nothing refers to, and a query that counts it. */
  readonly leftovers: () => readonly Leftover[];
  /** Null where the database can index no texts. */
  readonly index: SearchIndex | null;
}

/** The part of a `StoreDriver` that is the same wherever sessions are in tables of an SQL database. */
export abstract class SqlDriver<Session extends SqlSession> extends RowDriver<Segment, Session> {
  readonly search?: (terms: readonly SearchTerm[], query: SessionQuery) => Promise<SearchHit[]>;
  readonly eraser: StoreEraser;

  constructor(database: SqlDatabase, parts: SqlParts<Session>) {
    const { cache, clock, index, listing } = parts;
    const removal = new Removal(database, { steps: parts.removal, cache, clock });
    const checkpoints = new CheckpointRows(database);
    super({ ...parts, removal, checkpoints });
    this.eraser = new SqlEraser(database, { ...parts, removal, checkpoints });
    if (index === null) return;
    const read = (sessionId: string): AsyncIterable<Entry> => this.read(sessionId, readRange({}));
    this.search = (terms, { limit = PAGE_ITEMS_MAX, ...query }) =>
      searchByScan(candidatesFor(database, { index, listing }, terms, query), read, terms, limit);
  }
}
