import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import { filterOf, type ListedQuery, type SessionFilter } from "../sql/session-filter.ts";
import type { SqlListing } from "../sql/sql-driver.ts";
import type { LeaseColumns } from "./lease-columns.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import type { PostgresPort } from "./postgres-port.ts";
import { SESSION_COLUMNS, type SessionRow, sessionsIn } from "./session-row.ts";

// Each costs a listing one more row to sort; above this many, bringing their rows up to date pays.
const UNSETTLED_MAX = 200;
const BATCH_SESSIONS = 500;
/** How much of it one listing does; what is left is for the next. */
const BATCHES_MAX = 8;

interface ListedRow extends SessionRow {
  readonly behind: string;
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
    const { schema } = this.#handle;
    const { sql, values } = this.#filterOf(query);
    const order = "ORDER BY modified_at DESC, id DESC LIMIT ?";
    const place = after === null ? [] : [after.modifiedAt, after.id];
    const from = (column: string): string => (after === null ? "" : `AND (${column}, id) < (?, ?)`);
    const page = [...values, ...place, limit];
    if (query.deleted === true) {
      const rows = `SELECT ${SESSION_COLUMNS}, 0 AS behind FROM ${sessionsIn(schema)} WHERE ${sql} ${from("modified_at")}`;
      return this.#heads(await this.#handle.rows<ListedRow>(`${rows} ${order}`, page));
    }
    const rows = `SELECT *, ${this.#behind()} AS behind FROM (
        (SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(schema)} WHERE NOT unsettled AND ${sql} ${from("listed_at")}
         ORDER BY listed_at DESC, id DESC LIMIT ?)
        UNION ALL
        (SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(schema)} WHERE unsettled AND ${sql} ${from("modified_at")} ${order})
      ) AS listed ${order}`;
    return this.#heads(await this.#handle.rows<ListedRow>(rows, [...page, ...page, limit]));
  }

  async idleSince(before: string, limit: number): Promise<SessionHead[]> {
    const { schema } = this.#handle;
    const open = "deleted_at IS NULL AND status IN ('active', 'suspended')";
    const rows = await this.#handle.rows<ListedRow>(
      `SELECT *, ${this.#behind()} AS behind FROM (
         (SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(schema)} WHERE NOT unsettled AND ${open} AND idle_at < $1
          ORDER BY idle_at, id LIMIT $2)
         UNION ALL
         (SELECT ${SESSION_COLUMNS} FROM ${sessionsIn(schema)} WHERE unsettled AND ${open} AND updated_at < $1
          ORDER BY updated_at, id LIMIT $2)
       ) AS listed ORDER BY updated_at, id LIMIT $2`,
      [before, limit],
    );
    return this.#heads(rows);
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

  async #heads(rows: readonly ListedRow[]): Promise<SessionHead[]> {
    const sessions = await Promise.all(rows.map((row) => this.#port.sessionOf(row)));
    if (Number(rows[0]?.behind ?? 0) > UNSETTLED_MAX) await this.#settle();
    return sessions.flatMap((session) => session?.head ?? []);
  }

  /** How many rows are behind, counted as far as it matters. */
  #behind(): string {
    return `(SELECT count(*) FROM (
      SELECT 1 FROM ${this.#handle.schema}.sessions WHERE unsettled AND deleted_at IS NULL LIMIT ${UNSETTLED_MAX + 1}
    ) AS counted)`;
  }

  /** Brings rows up to date, once each however much was appended to the session. */
  async #settle(): Promise<void> {
    const { schema } = this.#handle;
    try {
      for (let batch = 0; batch < BATCHES_MAX; batch++) {
        // A row that someone is appending to is left for the next time.
        const settled = await this.#handle.write(
          `WITH behind AS (
             SELECT key FROM ${schema}.sessions WHERE unsettled AND deleted_at IS NULL
             ORDER BY key LIMIT ${BATCH_SESSIONS} FOR NO KEY UPDATE SKIP LOCKED
           ), current AS (
             UPDATE ${schema}.heads SET marked = false FROM behind WHERE session_key = key
             RETURNING session_key, modified_at, updated_at
           )
           UPDATE ${schema}.sessions SET listed_at = modified_at, idle_at = updated_at, unsettled = false
           FROM current WHERE key = session_key RETURNING key`,
        );
        if (settled.length < BATCH_SESSIONS) return;
      }
    } catch (error) {
      // A database that is full or read-only can still be listed, only with more to sort.
      if (!(error instanceof SessionError)) throw error;
    }
  }
}
