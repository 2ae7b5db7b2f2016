import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import { filterOf, type ListedQuery, type SessionFilter } from "../sql/session-filter.ts";
import type { SqlListing } from "../sql/sql-driver.ts";
import type { LeaseColumns } from "./lease-columns.ts";
import type { SqlValue } from "./postgres-connection.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import type { PostgresPort } from "./postgres-port.ts";
import { SESSION_COLUMNS, type SessionRow, sessionsIn } from "./session-row.ts";

// Each outdated row is one more row to sort in a listing; above this many, refreshing them is cheaper.
const STALE_MAX = 200;
/** How many rows one listing refreshes at most; the next listing continues. */
const REFRESHED_AT_ONCE = 2000;

interface ListedRow extends SessionRow {
  readonly stale: string;
}

interface PageQuery {
  readonly where: (column: string) => string;
  readonly values: readonly SqlValue[];
  readonly limit: number;
  /** The user whose sessions are listed; empty for all users. */
  readonly users: readonly string[];
}

/**
 * Lists sessions. Sessions with a current row come sorted from an index; the few with an outdated row (`unsettled`) are sorted
 * in. The cost of a listing so depends on its page, and an append updates no index.
 */
export class Listing implements SqlListing {
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;
  readonly #leases: LeaseColumns;

  constructor(handle: PostgresHandle, port: PostgresPort, leases: LeaseColumns) {
    this.#handle = handle;
    this.#port = port;
    this.#leases = leases;
  }

  async list(query: ListedQuery, limit: number, after: ListPosition | null): Promise<SessionHead[]> {
    const { sql, values } = this.#filterOf(query);
    const where = (column: string): string => (after === null ? sql : `${sql} AND (${column}, id) < (?, ?)`);
    const bound = after === null ? values : [...values, after.modifiedAt, after.id];
    const users = query.userId === undefined ? [] : [query.userId];
    return this.#page("listed_at", "modified_at", "DESC", { where, values: bound, limit, users });
  }

  async idleSince(before: string, limit: number): Promise<SessionHead[]> {
    const where = (column: string): string =>
      `deleted_at IS NULL AND status IN ('active', 'suspended') AND ${column} < ?`;
    return this.#page("idle_at", "updated_at", "ASC", { where, values: [before], limit, users: [] });
  }

  async count(query: ListedQuery): Promise<number> {
    const { sql, values } = this.#filterOf(query);
    const count = `SELECT count(*) AS count FROM ${this.#handle.schema}.sessions WHERE ${sql}`;
    const [row] = await this.#handle.rows<{ count: string }>(count, values);
    return Number(row?.count ?? 0);
  }

  #filterOf(query: ListedQuery): SessionFilter {
    return filterOf(this.#handle.dialect, query, () => this.#leases.held());
  }

  /** The first sessions by a time: current rows by the indexed column `indexed`, merged with outdated rows by `current`. */
  async #page(
    indexed: string,
    current: string,
    order: "ASC" | "DESC",
    { where, values, limit, users }: PageQuery,
  ): Promise<SessionHead[]> {
    const from = `SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(this.#handle.schema)}`;
    const first = (column: string): string => `ORDER BY ${column} ${order}, id ${order} LIMIT ?`;
    const rows = `SELECT *, ${this.#staleCount(users)} AS stale FROM (
        (${from} WHERE NOT unsettled AND ${where(indexed)} ${first(indexed)})
        UNION ALL
        (${from} WHERE unsettled AND ${where(current)} ${first(current)})
      ) AS listed ${first(current)}`;
    const bound = [...users, ...values, limit, ...values, limit, limit];
    return this.#heads(await this.#handle.rows<ListedRow>(rows, bound));
  }

  async #heads(rows: readonly ListedRow[]): Promise<SessionHead[]> {
    const sessions = await Promise.all(rows.map((row) => this.#port.sessionOf(row)));
    if (Number(rows[0]?.stale ?? 0) > STALE_MAX) await this.#refresh();
    return sessions.flatMap((session) => session?.head ?? []);
  }

  /** SQL that counts outdated rows up to the limit. The listing of a user counts only the rows of that user, as it sorts no others. */
  #staleCount(users: readonly string[]): string {
    const where = ["unsettled AND deleted_at IS NULL", ...users.map(() => "user_id = ?")].join(" AND ");
    return `(SELECT count(*) FROM (
      SELECT 1 FROM ${this.#handle.schema}.sessions WHERE ${where} LIMIT ${STALE_MAX + 1}
    ) AS counted)`;
  }

  /** Refreshes outdated rows, each once for any number of appends. */
  async #refresh(): Promise<void> {
    const { schema } = this.#handle;
    try {
      // Skips rows that are locked by an append; the next listing refreshes them.
      await this.#handle.change(
        `WITH stale AS (
           SELECT key FROM ${schema}.sessions WHERE unsettled AND deleted_at IS NULL
           ORDER BY key LIMIT ${REFRESHED_AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED
         ), current AS (
           UPDATE ${schema}.heads SET marked = false FROM stale WHERE session_key = key
           RETURNING session_key, modified_at, updated_at
         )
         UPDATE ${schema}.sessions SET listed_at = modified_at, idle_at = updated_at, unsettled = false
         FROM current WHERE key = session_key`,
      );
    } catch (error) {
      // A database that is full or read-only can still be listed, with more rows to sort.
      if (!(error instanceof SessionError)) throw error;
    }
  }
}
