import { MODIFIED_AT, UPDATED_AT } from "./schema.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

const BATCH_SESSIONS = 500;

/** Where a session's own log ends, as a subquery of one that has `sessions`. */
export const LAST_SEQ = "(SELECT max(seq) FROM entries WHERE session_key = sessions.key)";

const SETTLE = `UPDATE sessions SET (version, updated_at, modified_at) = (
  SELECT seq + 1, ${UPDATED_AT}, ${MODIFIED_AT} FROM entries
  WHERE session_key = sessions.key AND seq = ${LAST_SEQ}
) WHERE key IN`;

/**
 * Brings rows of `sessions` up to date until at most `limit` of them are behind.
 *
 * An append writes nothing but its own row. What the rows of `sessions` say about time and length follows here, when
 * someone is going to need it: for many sessions at once, and for each only once however much was appended to it.
 */
export function settleDownTo(handle: SqliteHandle, limit: number): void {
  const { count } = handle.row("SELECT count(*) AS count FROM unsettled") as { count: number };
  const some = "(SELECT session_key FROM unsettled ORDER BY session_key LIMIT ?)";
  // Others may go on appending; what they add meanwhile is for the next time.
  for (let settled = 0; settled < count - limit; settled += BATCH_SESSIONS) {
    handle.transaction(() => {
      handle.change(`${SETTLE} ${some}`, [BATCH_SESSIONS]);
      handle.change(`DELETE FROM unsettled WHERE session_key IN ${some}`, [BATCH_SESSIONS]);
    });
  }
}

/** Brings the row of one session up to date. Must be in a transaction. */
export function settle(handle: SqliteHandle, key: number): void {
  const changes = handle.change("DELETE FROM unsettled WHERE session_key = ?", [key]);
  if (changes > 0) handle.change(`${SETTLE} (?)`, [key]);
}
