import { hasHolderEnded, thisProcess } from "../../internal/process-identity.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";
import type { SessionFilter } from "../sql/session-filter.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** The key of a live session, joined with its unexpired lease, if it has one. */
interface LeaseRow {
  readonly key: number;
  readonly run_id: string;
  readonly token: number | null;
  readonly expires_ms: number;
  /** The identity of the process that took the lease, as JSON; null if an earlier version of Skein took it. */
  readonly holder: string | null;
}

const HOLDER = JSON.stringify(thisProcess);

/**
 * Leases in a table, which all processes on the database share. Each process compares expiry times with its own clock. A
 * lease also ends when the process that took it is known to have ended. The token is the AUTOINCREMENT key of the row, so
 * tokens only grow, even over sessions that were purged and created again.
 */
export class LeaseRows implements LeaseTable {
  readonly #handle: SqliteHandle;
  readonly #clock: () => Date;

  constructor(handle: SqliteHandle, clock: () => Date) {
    this.#handle = handle;
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease> {
    return this.#handle.transaction(() => {
      const found = this.#find(sessionId);
      if (found === undefined) throw new SessionNotFoundError(sessionId);
      if (isLive(found)) throw new SessionBusyError(sessionId, `run ${found.run_id}`);
      const untilMs = this.nowMs() + ttlMs;
      const sql = "REPLACE INTO leases (session_key, run_id, expires_ms, holder) VALUES (?, ?, ?, ?) RETURNING token";
      const { token } = this.#handle.row(sql, [found.key, runId, untilMs, HOLDER]) as { token: number };
      return { runId, token, untilMs };
    });
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<number | null> {
    const now = this.nowMs();
    const changes = this.#handle.change(
      `UPDATE leases SET expires_ms = ? WHERE token = ? AND expires_ms > ?
         AND session_key = (SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL)`,
      [now + ttlMs, token, now, sessionId],
    );
    return changes === 0 ? null : now + ttlMs;
  }

  async release(_sessionId: string, token: number): Promise<void> {
    this.#handle.change("DELETE FROM leases WHERE token = ?", [token]);
  }

  async current(sessionId: string): Promise<StoredLease | null> {
    const found = this.#find(sessionId);
    if (found === undefined || !isLive(found)) return null;
    return { runId: found.run_id, token: found.token, untilMs: found.expires_ms };
  }

  /** The token of a session's live lease, or null. */
  tokenOf(sessionKey: number): number | null {
    const sql = "SELECT token FROM leases WHERE session_key = ? AND expires_ms > ?";
    return this.#handle.row<{ token: number }>(sql, [sessionKey, this.nowMs()])?.token ?? null;
  }

  /** SQL condition on a row of `sessions`: the session has a live lease. */
  held(): SessionFilter {
    const now = this.nowMs();
    const holders = "SELECT DISTINCT holder FROM leases WHERE expires_ms > ?";
    const ended = this.#handle
      .rows<Pick<LeaseRow, "holder">>(holders, [now])
      .filter(({ holder }) => hasHolderEnded(holder));
    const sql = `EXISTS (SELECT 1 FROM leases WHERE session_key = sessions.key AND expires_ms > ?
      AND coalesce(holder, '') NOT IN (SELECT value FROM json_each(?)))`;
    return { sql, values: [now, JSON.stringify(ended.map(({ holder }) => holder))] };
  }

  #find(sessionId: string): LeaseRow | undefined {
    return this.#handle.row(
      `SELECT key, run_id, token, expires_ms, holder FROM sessions
       LEFT JOIN leases ON session_key = key AND expires_ms > ? WHERE id = ? AND deleted_at IS NULL`,
      [this.nowMs(), sessionId],
    );
  }

  /** The time by which leases expire. */
  nowMs(): number {
    return this.#clock().getTime();
  }
}

function isLive(row: LeaseRow): row is LeaseRow & { readonly token: number } {
  return row.token !== null && !hasHolderEnded(row.holder);
}
