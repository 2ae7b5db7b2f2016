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

// Each costs a listing one more row to sort; above this many, bringing their rows up to date pays.
const UNSETTLED_MAX = 200;
/** How many of them one listing brings up to date; what is left is for the next. */
const SETTLED_AT_ONCE = 2000;

interface ListedRow extends SessionRow {
  readonly behind: string;
}

interface PageQuery {
  readonly where: (column: string) => string;
  readonly values: readonly SqlValue[];
  readonly limit: number;
  /** The user whose sessions are asked for; empty where it is everyone. */
  readonly users: readonly string[];
}

/**
 * Lists sessions. Those whose row is settled come in order out of an index; the few others are sorted in. So a listing
 * costs what it shows, and appends change no index.
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

  /** The first sessions by a time: `settled` rows in the order of an index, and with them the others by what they say now. */
  async #page(
    settled: string,
    current: string,
    order: "ASC" | "DESC",
    { where, values, limit, users }: PageQuery,
  ): Promise<SessionHead[]> {
    const from = `SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(this.#handle.schema)}`;
    const first = (column: string): string => `ORDER BY ${column} ${order}, id ${order} LIMIT ?`;
    const rows = `SELECT *, ${this.#behind(users)} AS behind FROM (
        (${from} WHERE NOT unsettled AND ${where(settled)} ${first(settled)})
        UNION ALL
        (${from} WHERE unsettled AND ${where(current)} ${first(current)})
      ) AS listed ${first(current)}`;
    const bound = [...users, ...values, limit, ...values, limit, limit];
    return this.#heads(await this.#handle.rows<ListedRow>(rows, bound));
  }

  async #heads(rows: readonly ListedRow[]): Promise<SessionHead[]> {
    const sessions = await Promise.all(rows.map((row) => this.#port.sessionOf(row)));
    if (Number(rows[0]?.behind ?? 0) > UNSETTLED_MAX) await this.#settle();
    return sessions.flatMap((session) => session?.head ?? []);
  }

  /** How many rows are behind, counted as far as it matters: the listing of a user need not sort in those of others. */
  #behind(users: readonly string[]): string {
    const where = ["unsettled AND deleted_at IS NULL", ...users.map(() => "user_id = ?")].join(" AND ");
    return `(SELECT count(*) FROM (
      SELECT 1 FROM ${this.#handle.schema}.sessions WHERE ${where} LIMIT ${UNSETTLED_MAX + 1}
    ) AS counted)`;
  }

  /** Brings rows up to date, once each however much was appended to the session. */
  async #settle(): Promise<void> {
    const { schema } = this.#handle;
    try {
      // A row that someone is appending to is left for the next time.
      await this.#handle.change(
        `WITH behind AS (
           SELECT key FROM ${schema}.sessions WHERE unsettled AND deleted_at IS NULL
           ORDER BY key LIMIT ${SETTLED_AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED
         ), current AS (
           UPDATE ${schema}.heads SET marked = false FROM behind WHERE session_key = key
           RETURNING session_key, modified_at, updated_at
         )
         UPDATE ${schema}.sessions SET listed_at = modified_at, idle_at = updated_at, unsettled = false
         FROM current WHERE key = session_key`,
      );
    } catch (error) {
      // A database that is full or read-only can still be listed, only with more to sort.
      if (!(error instanceof SessionError)) throw error;
    }
  }
}
