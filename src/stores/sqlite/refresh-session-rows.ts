import { MODIFIED_AT, UPDATED_AT } from "./schema.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

const BATCH_SESSIONS = 500;

/** SQL for the position of the last own entry of a session, as a subquery in a query of `sessions`. */
export const LAST_SEQ = "(SELECT max(seq) FROM entries WHERE session_key = sessions.key)";

const REFRESH = `UPDATE sessions SET (version, updated_at, modified_at) = (
  SELECT seq + 1, ${UPDATED_AT}, ${MODIFIED_AT} FROM entries
  WHERE session_key = sessions.key AND seq = ${LAST_SEQ}
) WHERE key IN`;

/**
 * Refreshes rows of `sessions` until at most `staleMax` of them are outdated.
 *
 * An append inserts one row into `entries` and updates nothing else, so the version and the times in `sessions` become
 * outdated. They are refreshed here before a listing or search needs them, in batches and once for any number of appends.
 * The table `unsettled` lists the outdated rows.
 */
export function refreshSessionRows(handle: SqliteHandle, staleMax: number): void {
  const { count } = handle.row("SELECT count(*) AS count FROM unsettled") as { count: number };
  const some = "(SELECT session_key FROM unsettled ORDER BY session_key LIMIT ?)";
  // Bounded by the count at the start: other processes may append all the time.
  for (let refreshed = 0; refreshed < count - staleMax; refreshed += BATCH_SESSIONS) {
    handle.transaction(() => {
      handle.change(`${REFRESH} ${some}`, [BATCH_SESSIONS]);
      handle.change(`DELETE FROM unsettled WHERE session_key IN ${some}`, [BATCH_SESSIONS]);
    });
  }
}

/** Refreshes the row of one session. Must run in a transaction. */
export function refreshSessionRow(handle: SqliteHandle, key: number): void {
  const changes = handle.change("DELETE FROM unsettled WHERE session_key = ?", [key]);
  if (changes > 0) handle.change(`${REFRESH} (?)`, [key]);
}
