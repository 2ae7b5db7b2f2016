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
 * Leases in columns of `heads`, which all processes on the database share. They expire by the clock of the database, or by
 * the given clock. An append updates the same row, so it always checks the current lease. Tokens come from a sequence, so
 * they only grow, even over sessions that were purged and created again.
 */
export class LeaseColumns implements LeaseTable {
  readonly #handle: PostgresHandle;
  readonly #clock: (() => Date) | undefined;
  /** SQL for the key of the live session whose id is `$1`. */
  readonly #key: string;

  constructor(handle: PostgresHandle, clock?: () => Date) {
    this.#handle = handle;
    this.#key = `(SELECT key FROM ${handle.schema}.sessions WHERE id = $1 AND ${IS_LIVE})`;
    this.#clock = clock;
  }

  /** The time by which leases expire; null for the clock of the database. */
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
    const held = await this.#lookUp(sessionId);
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
    const row = await this.#lookUp(sessionId, reader);
    return row === undefined || row.run === null ? null : leaseOf(row);
  }

  /** SQL condition on a row of `sessions`: the session has a live lease. */
  held(): SessionFilter {
    // A subquery per session with an open run: a join might read the leases of all sessions.
    const sql = `coalesce((SELECT ${leaseIsLive("?")} FROM ${this.#handle.schema}.heads AS lease
      WHERE lease.session_key = key), false)`;
    return { sql, values: [this.nowMs()] };
  }

  /** The lease columns of a live session; `run` is null if no lease is live. */
  async #lookUp(sessionId: string, reader: Pick<SqlRunner, "rows"> = this.#handle): Promise<LeaseRow | undefined> {
    const [row] = await reader.rows<LeaseRow>(
      `SELECT CASE WHEN ${leaseIsLive("$2")} THEN lease_run END AS run, lease_token AS token, lease_until_ms AS until
       FROM ${this.#handle.schema}.heads WHERE session_key = ${this.#key}`,
      [sessionId, this.nowMs()],
    );
    return row;
  }
}

/** SQL condition: the lease of a row in `heads` is live. `given` is the SQL of the time, where NULL means the clock of the database. */
function leaseIsLive(given: string): string {
  return `lease_until_ms > ${now(given)}`;
}

function now(given: string): string {
  return `coalesce(${given}::bigint, ${DATABASE_NOW_MS})`;
}

function leaseOf({ run, token, until }: LeaseRow): StoredLease {
  return { runId: run as string, token: Number(token), untilMs: Number(until) };
}
