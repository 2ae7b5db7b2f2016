import { SessionBusyError, SessionNotFoundError } from "skein";
import type { LeaseTable, StoredLease } from "skein/store";
import { type Queries, select } from "./database.ts";

interface LeaseRow {
  readonly run_id: string;
  readonly token: number;
  readonly expires_ms: number;
}

const COLUMNS = "run_id, token, expires_ms";
const KEY = "(SELECT key FROM skein.sessions WHERE id = $1 AND deleted_at IS NULL)";

/** Leases in a table. Tokens come from a sequence, so that a later holder has a larger one. */
export class SessionLeases implements LeaseTable {
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease> {
    const now = Date.now();
    const [taken] = await select<LeaseRow>(
      this.#queries,
      `INSERT INTO skein.leases (session_key, token, run_id, expires_ms)
       SELECT key, nextval('skein.lease_tokens'), $2, $3 FROM skein.sessions WHERE id = $1 AND deleted_at IS NULL
       ON CONFLICT (session_key) DO UPDATE
         SET token = excluded.token, run_id = excluded.run_id, expires_ms = excluded.expires_ms
         WHERE leases.expires_ms <= $4
       RETURNING ${COLUMNS}`,
      [sessionId, runId, now + ttlMs, now],
    );
    if (taken !== undefined) return leaseOf(taken);
    const sessions = await select(this.#queries, `SELECT 1 WHERE ${KEY} IS NOT NULL`, [sessionId]);
    if (sessions.length === 0) throw new SessionNotFoundError(sessionId);
    const holder = await this.current(sessionId);
    throw new SessionBusyError(sessionId, holder === null ? "a run that has just ended" : `run ${holder.runId}`);
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<number | null> {
    const now = Date.now();
    const [row] = await select<LeaseRow>(
      this.#queries,
      `UPDATE skein.leases SET expires_ms = $3 WHERE session_key = ${KEY} AND token = $2 AND expires_ms > $4
       RETURNING ${COLUMNS}`,
      [sessionId, token, now + ttlMs, now],
    );
    return row?.expires_ms ?? null;
  }

  async release(sessionId: string, token: number): Promise<void> {
    await select(this.#queries, `DELETE FROM skein.leases WHERE session_key = ${KEY} AND token = $2`, [
      sessionId,
      token,
    ]);
  }

  async current(sessionId: string): Promise<StoredLease | null> {
    const [row] = await select<LeaseRow>(
      this.#queries,
      `SELECT ${COLUMNS} FROM skein.leases WHERE session_key = ${KEY} AND expires_ms > $2`,
      [sessionId, Date.now()],
    );
    return row === undefined ? null : leaseOf(row);
  }
}

function leaseOf({ run_id, token, expires_ms }: LeaseRow): StoredLease {
  return { runId: run_id, token, untilMs: expires_ms };
}
