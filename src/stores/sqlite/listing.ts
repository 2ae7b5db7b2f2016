import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { compareForListing, idleSince } from "../../session/query.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import { kindOf } from "../rows/runs-columns.ts";
import { filterOf, type ListedQuery, type SessionFilter } from "../sql/session-filter.ts";
import type { SqlListing } from "../sql/sql-driver.ts";
import type { LeaseRows } from "./lease-rows.ts";
import { MODIFIED_AT, UPDATED_AT } from "./schema.ts";
import { LAST_SEQ, settleDownTo } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import type { SessionVersion, SqlitePort } from "./sqlite-port.ts";

// Each costs a listing one more look-up; above this many, bringing their rows up to date pays.
const UNSETTLED_MAX = 200;

/** A session in a listing. */
interface ListedSession extends SessionVersion {
  readonly modifiedAt: string;
  readonly updatedAt: string;
}

const LISTED_COLUMNS =
  "sessions.id AS id, key, version, sessions.modified_at AS modifiedAt, sessions.updated_at AS updatedAt";
const UNSETTLED_COLUMNS = `sessions.id AS id, key, seq + 1 AS version,
  ${MODIFIED_AT} AS modifiedAt, ${UPDATED_AT} AS updatedAt`;
// Cross joins, so that those few are looked up, and not all sessions that a query may mean.
const UNSETTLED_FROM = `unsettled CROSS JOIN sessions ON key = unsettled.session_key
  CROSS JOIN entries ON entries.session_key = key AND seq = ${LAST_SEQ}`;
const IS_SETTLED = "key NOT IN (SELECT session_key FROM unsettled)";

/**
 * Lists sessions. Those whose row is current come in order out of an index; the few others are looked up in the log,
 * and both are merged. So a listing costs what it shows, and appends keep no index.
 */
export class Listing implements SqlListing {
  readonly #port: SqlitePort;
  readonly #handle: SqliteHandle;
  readonly #leases: LeaseRows;

  constructor(port: SqlitePort, leases: LeaseRows) {
    this.#port = port;
    this.#handle = port.runner;
    this.#leases = leases;
  }

  list(query: ListedQuery, limit: number, after: ListPosition | null): SessionHead[] {
    this.#settleMany();
    const filter = this.#filterOf(query);
    // A few sessions are looked up and then sorted, which the planner does only with an order that no index has.
    const order = query.keys === undefined ? "sessions.modified_at" : "+sessions.modified_at";
    const position = after === null ? "" : "AND (sessions.modified_at, sessions.id) < (?, ?)";
    // Many small reads cost half as much when they share a transaction.
    return this.#handle.snapshot(() => {
      const settled = this.#handle.rows<ListedSession>(
        `SELECT ${LISTED_COLUMNS} FROM sessions ${indexOfRuns(query)}
         WHERE ${filter.sql} AND ${IS_SETTLED} ${position} ORDER BY ${order} DESC, sessions.id DESC LIMIT ?`,
        [...filter.values, ...(after === null ? [] : [after.modifiedAt, after.id]), limit],
      );
      const others = this.#unsettled(filter).filter((row) => after === null || compareForListing(row, after) > 0);
      return this.#heads([...settled, ...others].sort(compareForListing).slice(0, limit));
    });
  }

  idleSince(before: string, limit: number): SessionHead[] {
    this.#settleMany();
    const open = filterOf(this.#handle.dialect, { status: ["active", "suspended"] });
    return this.#handle.snapshot(() => {
      const settled = this.#handle.rows<ListedSession>(
        `SELECT ${LISTED_COLUMNS} FROM sessions
         WHERE deleted_at IS NULL AND status IN ('active', 'suspended') AND updated_at < ? AND ${IS_SETTLED}
         ORDER BY updated_at, id LIMIT ?`,
        [before, limit],
      );
      const others = this.#unsettled(open).filter(({ updatedAt }) => updatedAt < before);
      return idleSince(this.#heads([...settled, ...others]), before).slice(0, limit);
    });
  }

  count(query: ListedQuery): number {
    const { sql, values } = this.#filterOf(query);
    const counting = `SELECT count(*) AS count FROM sessions ${indexOfRuns(query)} WHERE ${sql}`;
    return this.#handle.row<{ count: number }>(counting, values)?.count ?? 0;
  }

  #filterOf(query: ListedQuery): SessionFilter {
    return filterOf(this.#handle.dialect, query, () => this.#leases.held());
  }

  #heads(rows: readonly ListedSession[]): SessionHead[] {
    return rows.flatMap((row) => this.#port.loadVersion(row)?.head ?? []);
  }

  #unsettled({ sql, values }: SessionFilter): ListedSession[] {
    return this.#handle.rows(`SELECT ${UNSETTLED_COLUMNS} FROM ${UNSETTLED_FROM} WHERE ${sql}`, values);
  }

  #settleMany(): void {
    try {
      settleDownTo(this.#handle, UNSETTLED_MAX);
    } catch (error) {
      // A database that is full, locked or read-only can still be listed, only with more look-ups.
      if (!(error instanceof SessionError)) throw error;
    }
  }
}

/**
 * The index that finds sessions by their runs, as SQL after the name of their table, where a query asks for them. SQLite
 * does not know how few have any, and would rather go through all sessions in the order of the listing.
 */
function indexOfRuns({ runs, dueBefore, userId, parentId, deleted, keys }: ListedQuery): string {
  if (deleted === true || parentId !== undefined || keys !== undefined) return "";
  if (dueBefore !== undefined) return "INDEXED BY sessions_due";
  if (runs === undefined) return "";
  return `INDEXED BY sessions_${kindOf(runs)}${userId === undefined ? "" : "_by_user"}`;
}
