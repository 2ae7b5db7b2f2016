import { type Asking, ask } from "../rows/asking.ts";
import type { RemovalSteps } from "../sql/removal.ts";
import type { SqlRunner } from "../sql/sql-database.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";
import { IS_LIVE } from "./session-row.ts";
import { notifyIfWatched } from "./subscriptions.ts";

/** What removing sessions takes in PostgreSQL. */
export function removalSteps({ schema, channel }: PostgresHandle): RemovalSteps {
  return {
    *hide(inside: SqlRunner, sessionId: string, at: string): Asking<boolean> {
      const hide = `WITH gone AS (
          UPDATE ${schema}.sessions SET deleted_at = ? WHERE id = ? AND ${IS_LIVE} RETURNING key
        )
        UPDATE ${schema}.heads SET marked = false, lease_token = NULL, lease_run = NULL, lease_until_ms = NULL
        FROM gone WHERE session_key = key RETURNING key, ${notifyIfWatched(channel)} AS told`;
      return (yield* ask(inside.change(hide, [at, sessionId]))) > 0;
    },
    *forget(inside: SqlRunner, key: number): Asking<void> {
      yield* ask(inside.change(`UPDATE ${schema}.sessions SET unsettled = false WHERE key = ?`, [key]));
      yield* ask(inside.change(`DELETE FROM ${schema}.search_index WHERE session_key = ? AND block < 0`, [key]));
    },
    *removeEntries(inside: SqlRunner, key: number, from: number): Asking<void> {
      // Of a block that is kept in part, what goes must not be found any more either: it is made again.
      const block = Math.floor(from / SEARCH_BLOCK_ENTRIES);
      const texts = `DELETE FROM ${schema}.search_index WHERE session_key = ? AND block >= ?`;
      yield* ask(inside.change(texts, [key, block]));
      yield* ask(inside.change(`DELETE FROM ${schema}.entries WHERE session_key = ? AND seq >= ?`, [key, from]));
    },
    *cut(inside: SqlRunner, key: number, version: number): Asking<void> {
      yield* ask(inside.change(`UPDATE ${schema}.heads SET version = ? WHERE session_key = ?`, [version, key]));
      // The block that the log ends in now is not in the index any more.
      const whole = version - (version % SEARCH_BLOCK_ENTRIES);
      const sessions = `UPDATE ${schema}.sessions SET unsearched = true, searched = least(searched, ?) WHERE key = ?`;
      yield* ask(inside.change(sessions, [whole, key]));
    },
    *removeRest(inside: SqlRunner, key: number): Asking<void> {
      yield* ask(inside.change(`DELETE FROM ${schema}.heads WHERE session_key = ?`, [key]));
    },
    *handOver(inside: SqlRunner, from: number, to: number): Asking<void> {
      const watched = `UPDATE ${schema}.heads SET watched_until_ms =
          (SELECT watched_until_ms FROM ${schema}.heads WHERE session_key = ?) WHERE session_key = ?`;
      yield* ask(inside.change(watched, [from, to]));
    },
  };
}
