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
 * An append writes nothing but its own row. What the rows of `sessions` say about time and length is brought up to
 * date here, when someone is going to need it: for many sessions at once, and for each only once however much was
 * appended to it.
 */
export class Settling {
  readonly #handle: SqliteHandle;

  constructor(handle: SqliteHandle) {
    this.#handle = handle;
  }

  /** Brings the rows up to date until at most `limit` sessions are behind. */
  settleDownTo(limit: number): void {
    const behind = this.#count() - limit;
    // Others may go on appending; what they add meanwhile is for the next time.
    for (let settled = 0; settled < behind; settled += BATCH_SESSIONS) this.#settleBatch();
  }

  /** Brings one row up to date. Must be in a transaction. */
  settle(key: number): void {
    const changes = this.#handle.prepare("DELETE FROM unsettled WHERE session_key = ?").run([key]);
    if (changes > 0) this.#handle.prepare(`${SETTLE} (?)`).run([key]);
  }

  #settleBatch(): void {
    const some = "(SELECT session_key FROM unsettled ORDER BY session_key LIMIT ?)";
    this.#handle.transaction(() => {
      this.#handle.prepare(`${SETTLE} ${some}`).run([BATCH_SESSIONS]);
      this.#handle.prepare(`DELETE FROM unsettled WHERE session_key IN ${some}`).run([BATCH_SESSIONS]);
    });
  }

  #count(): number {
    return Number(
      this.#handle.prepare("SELECT count(*) AS count FROM unsettled").get<{ count: number }>([])?.count ?? 0,
    );
  }
}
