import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";
import type { SessionFilter } from "../sql/session-filter.ts";
import type { SqlRunner } from "../sql/sql-database.ts";
import { DATABASE_NOW_MS, type PostgresHandle } from "./postgres-handle.ts";
import { IS_LIVE } from "./session-row.ts";

interface LeaseRow {
  readonly run: string | null;
  readonly token: string;
  readonly until: string;
}

const COLUMNS = "lease_run AS run, lease_token AS token, lease_until_ms AS until";

/**
 * Leases that hold among all processes on the database, by the clock of the database unless one was given. A lease
 * stands in the row of the session's head, so that whoever appends under it sees it as it is at that moment. Tokens come out of
 * a sequence, so that they grow over all sessions, also ones that were purged and made again.
 */
export class LeaseColumns implements LeaseTable {
  readonly #handle: PostgresHandle;
  readonly #clock: (() => Date) | undefined;
  /** The key of the live session whose id is `$1`, as SQL. */
  readonly #key: string;

  constructor(handle: PostgresHandle, clock?: () => Date) {
    this.#handle = handle;
    this.#key = `(SELECT key FROM ${handle.schema}.sessions WHERE id = $1 AND ${IS_LIVE})`;
    this.#clock = clock;
  }

  /** What time it is for leases; null for the clock of the database. */
  nowMs(): number | null {
    return this.#clock?.().getTime() ?? null;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease> {
    const { schema } = this.#handle;
    const [taken] = await this.#handle.write<LeaseRow>(
      `UPDATE ${schema}.heads SET lease_token = nextval('${schema}.lease_tokens'), lease_run = $2,
         lease_until_ms = ${now("$4")} + $3::bigint
       WHERE session_key = ${this.#key} AND (lease_run IS NULL OR lease_until_ms <= ${now("$4")})
       RETURNING ${COLUMNS}`,
      [sessionId, runId, ttlMs, this.nowMs()],
    );
    if (taken !== undefined) return leaseOf(taken);
    const held = await this.#lookAt(sessionId);
    if (held === undefined) throw new SessionNotFoundError(sessionId);
    throw new SessionBusyError(sessionId, held.run === null ? "a run that has just ended" : `run ${held.run}`);
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<number | null> {
    const [row] = await this.#handle.rows<LeaseRow>(
      `UPDATE ${this.#handle.schema}.heads SET lease_until_ms = ${now("$4")} + $3::bigint
       WHERE session_key = ${this.#key} AND lease_token = $2 AND ${leaseIsLive("$4")}
       RETURNING ${COLUMNS}`,
      [sessionId, token, ttlMs, this.nowMs()],
    );
    return row === undefined ? null : Number(row.until);
  }

  async release(sessionId: string, token: number): Promise<void> {
    await this.renew(sessionId, token, 0);
  }

  async current(sessionId: string, reader?: Pick<SqlRunner, "rows">): Promise<StoredLease | null> {
    const row = await this.#lookAt(sessionId, reader);
    return row === undefined || row.run === null ? null : leaseOf(row);
  }

  /** Whether someone has a session now, as a condition on its row. */
  held(): SessionFilter {
    // One look for each session that has a run: a join might read the leases of all sessions.
    const sql = `coalesce((SELECT ${leaseIsLive("?")} FROM ${this.#handle.schema}.heads AS lease
      WHERE lease.session_key = key), false)`;
    return { sql, values: [this.nowMs()] };
  }

  /** The lease of a live session, without a run when it is free. */
  async #lookAt(sessionId: string, reader: Pick<SqlRunner, "rows"> = this.#handle): Promise<LeaseRow | undefined> {
    const [row] = await reader.rows<LeaseRow>(
      `SELECT CASE WHEN ${leaseIsLive("$2")} THEN lease_run END AS run, lease_token AS token, lease_until_ms AS until
       FROM ${this.#handle.schema}.heads WHERE session_key = ${this.#key}`,
      [sessionId, this.nowMs()],
    );
    return row;
  }
}

/** Whether the lease of a head is live, as SQL; `given` is what time it is, null for the clock of the database. */
function leaseIsLive(given: string): string {
  return `lease_until_ms > ${now(given)}`;
}

function now(given: string): string {
  return `coalesce(${given}::bigint, ${DATABASE_NOW_MS})`;
}

function leaseOf({ run, token, until }: LeaseRow): StoredLease {
  return { runId: run as string, token: Number(token), untilMs: Number(until) };
}
