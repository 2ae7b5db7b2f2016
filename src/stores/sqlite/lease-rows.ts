import { hasEnded, parseProcessIdentity, thisProcess } from "../../internal/process-identity.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable } from "../../session/store-driver.ts";
import type { LeaseInfo } from "../../session/store.ts";
import type { SessionFilter } from "../sql/session-filter.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

interface LeaseRow {
  readonly run_id: string;
  readonly token: number;
  readonly expires_ms: number;
  /** The process that took it, as text; null where an earlier version of the program did. */
  readonly holder: string | null;
}

const HOLDER = JSON.stringify(thisProcess);
const COLUMNS = "run_id, token, expires_ms, holder";

/**
 * Leases that hold among all processes on the database, by the clock of each, and no longer than the process that took
 * them, where it is known to have ended. A token is the key of its row, and
 * SQLite gives no key out twice, so tokens grow over all sessions, also ones that were purged and made again.
 */
export class LeaseRows implements LeaseTable {
  readonly #handle: SqliteHandle;
  readonly #clock: () => Date;

  constructor(handle: SqliteHandle, clock: () => Date) {
    this.#handle = handle;
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<LeaseInfo> {
    return this.#handle.transaction(() => {
      const live = "SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL";
      const session = this.#handle.row<{ key: number }>(live, [sessionId]);
      if (session === undefined) throw new SessionNotFoundError(sessionId);
      const held = this.#live(sessionId);
      if (held !== undefined) throw new SessionBusyError(sessionId, `run ${held.run_id}`);
      const row = this.#handle.row<LeaseRow>(
        `REPLACE INTO leases (session_key, run_id, expires_ms, holder) VALUES (?, ?, ?, ?) RETURNING ${COLUMNS}`,
        [session.key, runId, this.nowMs() + ttlMs, HOLDER],
      );
      return infoOf(sessionId, row as LeaseRow);
    });
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<string | null> {
    const now = this.nowMs();
    const changes = this.#handle.change(
      `UPDATE leases SET expires_ms = ? WHERE token = ? AND expires_ms > ?
         AND session_key = (SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL)`,
      [now + ttlMs, token, now, sessionId],
    );
    return changes === 0 ? null : new Date(now + ttlMs).toISOString();
  }

  async release(_sessionId: string, token: number): Promise<void> {
    this.#handle.change("DELETE FROM leases WHERE token = ?", [token]);
  }

  async current(sessionId: string): Promise<LeaseInfo | null> {
    const live = this.#live(sessionId);
    return live === undefined ? null : infoOf(sessionId, live);
  }

  /** The token of a session's live lease, or null. */
  tokenOf(sessionKey: number): number | null {
    const sql = "SELECT token FROM leases WHERE session_key = ? AND expires_ms > ?";
    return this.#handle.row<{ token: number }>(sql, [sessionKey, this.nowMs()])?.token ?? null;
  }

  /** Whether someone has a session now, as a condition on its row. */
  held(): SessionFilter {
    const now = this.nowMs();
    const holders = "SELECT DISTINCT holder FROM leases WHERE expires_ms > ?";
    const gone = this.#handle.rows<Pick<LeaseRow, "holder">>(holders, [now]).filter(isGone);
    const sql = `EXISTS (SELECT 1 FROM leases WHERE session_key = sessions.key AND expires_ms > ?
      AND coalesce(holder, '') NOT IN (SELECT value FROM json_each(?)))`;
    return { sql, values: [now, JSON.stringify(gone.map(({ holder }) => holder))] };
  }

  #live(sessionId: string): LeaseRow | undefined {
    const row = this.#handle.row<LeaseRow>(
      `SELECT ${COLUMNS} FROM leases JOIN sessions ON key = session_key
       WHERE id = ? AND deleted_at IS NULL AND expires_ms > ?`,
      [sessionId, this.nowMs()],
    );
    return row === undefined || isGone(row) ? undefined : row;
  }

  /** What time it is for leases. */
  nowMs(): number {
    return this.#clock().getTime();
  }
}

/** Whether the process that took a lease has ended. */
function isGone({ holder }: Pick<LeaseRow, "holder">): boolean {
  const identity = parseProcessIdentity(holder);
  return identity !== null && hasEnded(identity);
}

function infoOf(sessionId: string, { run_id, token, expires_ms }: LeaseRow): LeaseInfo {
  return { sessionId, runId: run_id, token, expiresAt: new Date(expires_ms).toISOString() };
}
