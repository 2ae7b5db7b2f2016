import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { compareForListing, idleSince } from "../../session/query.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import { runsKindOf } from "../rows/runs-columns.ts";
import { filterOf, type ListedQuery, type SessionFilter } from "../sql/session-filter.ts";
import type { SqlListing } from "../sql/sql-driver.ts";
import type { LeaseRows } from "./lease-rows.ts";
import { MODIFIED_AT, UPDATED_AT } from "./schema.ts";
import { LAST_SEQ, refreshSessionRows } from "./refresh-session-rows.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import type { SessionVersion, SqlitePort } from "./sqlite-port.ts";

// Each outdated row costs a listing one more look-up; above this many, refreshing them is cheaper.
const STALE_MAX = 200;

/** A session in a listing. */
interface ListedSession extends SessionVersion {
  readonly modifiedAt: string;
  readonly updatedAt: string;
}

const LISTED_COLUMNS =
  "sessions.id AS id, key, version, sessions.modified_at AS modifiedAt, sessions.updated_at AS updatedAt";
const STALE_COLUMNS = `sessions.id AS id, key, seq + 1 AS version,
  ${MODIFIED_AT} AS modifiedAt, ${UPDATED_AT} AS updatedAt`;
// CROSS JOIN fixes the join order: the few outdated rows are looked up, instead of all sessions that match the query.
const STALE_FROM = `unsettled CROSS JOIN sessions ON key = unsettled.session_key
  CROSS JOIN entries ON entries.session_key = key AND seq = ${LAST_SEQ}`;
const IS_CURRENT = "key NOT IN (SELECT session_key FROM unsettled)";

/**
 * Lists sessions. Sessions with a current row come sorted from an index; the few with an outdated row are looked up in the
 * log, and both lists are merged. The cost of a listing so depends on its page, and an append updates no index.
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
    this.#refresh();
    const filter = this.#filterOf(query);
    // With given keys, looking them up and sorting is faster. The `+` hides the column from the index, so the planner does that.
    const order = query.keys === undefined ? "sessions.modified_at" : "+sessions.modified_at";
    const position = after === null ? "" : "AND (sessions.modified_at, sessions.id) < (?, ?)";
    // Many small reads in one transaction cost half as much as by themselves.
    return this.#handle.snapshot(() => {
      const current = this.#handle.rows<ListedSession>(
        `SELECT ${LISTED_COLUMNS} FROM sessions ${indexOfRuns(query)}
         WHERE ${filter.sql} AND ${IS_CURRENT} ${position} ORDER BY ${order} DESC, sessions.id DESC LIMIT ?`,
        [...filter.values, ...(after === null ? [] : [after.modifiedAt, after.id]), limit],
      );
      const others = this.#stale(filter).filter((row) => after === null || compareForListing(row, after) > 0);
      return this.#heads([...current, ...others].sort(compareForListing).slice(0, limit));
    });
  }

  idleSince(before: string, limit: number): SessionHead[] {
    this.#refresh();
    const open = filterOf(this.#handle.dialect, { status: ["active", "suspended"] });
    return this.#handle.snapshot(() => {
      const current = this.#handle.rows<ListedSession>(
        `SELECT ${LISTED_COLUMNS} FROM sessions
         WHERE deleted_at IS NULL AND status IN ('active', 'suspended') AND updated_at < ? AND ${IS_CURRENT}
         ORDER BY updated_at, id LIMIT ?`,
        [before, limit],
      );
      const others = this.#stale(open).filter(({ updatedAt }) => updatedAt < before);
      return idleSince(this.#heads([...current, ...others]), before).slice(0, limit);
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

  #stale({ sql, values }: SessionFilter): ListedSession[] {
    return this.#handle.rows(`SELECT ${STALE_COLUMNS} FROM ${STALE_FROM} WHERE ${sql}`, values);
  }

  #refresh(): void {
    try {
      refreshSessionRows(this.#handle, STALE_MAX);
    } catch (error) {
      // A database that is full, locked or read-only can still be listed, with more look-ups.
      if (!(error instanceof SessionError)) throw error;
    }
  }
}

/**
 * An `INDEXED BY` clause for a query by open runs, or an empty string. Without it, SQLite scans all sessions in the order of
 * the listing, since it does not know how few have open runs.
 */
function indexOfRuns({ runs, dueBefore, userId, parentId, deleted, keys }: ListedQuery): string {
  if (deleted === true || parentId !== undefined || keys !== undefined) return "";
  if (dueBefore !== undefined) return "INDEXED BY sessions_due";
  if (runs === undefined) return "";
  return `INDEXED BY sessions_${runsKindOf(runs)}${userId === undefined ? "" : "_by_user"}`;
}
