import { ask } from "../rows/asking.ts";
import type { RemovalSteps } from "../sql/removal.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";
import { IS_LIVE } from "./session-row.ts";
import { notifyIfWatched } from "./subscriptions.ts";

/** What removing sessions takes in PostgreSQL. */
export function removalSteps({ schema, channel, dialect }: PostgresHandle): RemovalSteps {
  return {
    *hide(inside, sessionIds, at) {
      const hide = `WITH gone AS (
          UPDATE ${schema}.sessions SET deleted_at = ?
          WHERE id IN (${sessionIds.map(() => "?").join(", ")}) AND ${IS_LIVE} RETURNING key
        )
        UPDATE ${schema}.heads SET marked = false, lease_token = NULL, lease_run = NULL, lease_until_ms = NULL
        FROM gone WHERE session_key = key RETURNING key, ${notifyIfWatched(channel)} AS told`;
      return (yield* ask(inside.change(hide, [at, ...sessionIds]))) > 0;
    },
    *cut(inside, key, version) {
      // Of a block that is kept in part, what goes must not be found any more either: it is made again.
      const whole = version - (version % SEARCH_BLOCK_ENTRIES);
      const texts = `DELETE FROM ${schema}.search_index WHERE session_key = ? AND (block < 0 OR block >= ?)`;
      yield* ask(inside.change(texts, [key, whole / SEARCH_BLOCK_ENTRIES]));
      yield* ask(inside.change(`DELETE FROM ${schema}.entries WHERE session_key = ? AND seq >= ?`, [key, version]));
      yield* ask(inside.change(`UPDATE ${schema}.heads SET version = ? WHERE session_key = ?`, [version, key]));
      const sessions = `UPDATE ${schema}.sessions SET unsettled = false, unsearched = true, searched = least(searched, ?)
        WHERE key = ?`;
      yield* ask(inside.change(sessions, [whole, key]));
    },
    *removeAll(inside, keys) {
      for (const table of ["search_index", "entries", "heads"])
        yield* ask(inside.change(`DELETE FROM ${schema}.${table} WHERE session_key ${dialect.inKeys}`, [keys]));
    },
    *handOver(inside, from, to) {
      const watched = `UPDATE ${schema}.heads SET watched_until_ms =
          (SELECT watched_until_ms FROM ${schema}.heads WHERE session_key = ?) WHERE session_key = ?`;
      yield* ask(inside.change(watched, [from, to]));
    },
  };
}
