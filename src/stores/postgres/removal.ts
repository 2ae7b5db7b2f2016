import { waitFor } from "../rows/coroutine.ts";
import type { RemovalStatements } from "../sql/removal.ts";
import type { LeftoverCount } from "../sql/sql-driver.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES, UNSAMPLED_COLUMNS } from "./schema.ts";
import { IS_LIVE } from "./session-row.ts";
import { notifyIfWatched } from "./subscriptions.ts";

/** The statements that remove sessions from PostgreSQL. */
export function removalStatements({ schema, channel, dialect }: PostgresHandle): RemovalStatements {
  return {
    *markDeleted(transaction, sessionIds, at) {
      const deletion = `WITH deleted AS (
          UPDATE ${schema}.sessions SET deleted_at = ?
          WHERE id IN (${sessionIds.map(() => "?").join(", ")}) AND ${IS_LIVE} RETURNING key
        )
        UPDATE ${schema}.heads SET marked = false, lease_token = NULL, lease_run = NULL, lease_until_ms = NULL
        FROM deleted WHERE session_key = key RETURNING key, ${notifyIfWatched(channel)} AS notified`;
      return (yield* waitFor(transaction.change(deletion, [at, ...sessionIds]))) > 0;
    },
    *truncate(transaction, key, version) {
      // Deletes also the index of a block that is kept only in part, which is then indexed again without the deleted entries.
      const whole = version - (version % SEARCH_BLOCK_ENTRIES);
      const texts = `DELETE FROM ${schema}.search_index WHERE session_key = ? AND (block < 0 OR block >= ?)`;
      yield* waitFor(transaction.change(texts, [key, whole / SEARCH_BLOCK_ENTRIES]));
      yield* waitFor(
        transaction.change(`DELETE FROM ${schema}.entries WHERE session_key = ? AND seq >= ?`, [key, version]),
      );
      yield* waitFor(
        transaction.change(`UPDATE ${schema}.heads SET version = ? WHERE session_key = ?`, [version, key]),
      );
      const sessions = `UPDATE ${schema}.sessions SET unsettled = false, unsearched = true, searched = least(searched, ?)
        WHERE key = ?`;
      yield* waitFor(transaction.change(sessions, [whole, key]));
    },
    *deleteRows(transaction, keys) {
      for (const table of ["search_index", "entries", "heads"])
        yield* waitFor(
          transaction.change(`DELETE FROM ${schema}.${table} WHERE session_key ${dialect.inKeys}`, [keys]),
        );
    },
    *moveRows(transaction, from, to) {
      const watched = `UPDATE ${schema}.heads SET watched_until_ms =
          (SELECT watched_until_ms FROM ${schema}.heads WHERE session_key = ?) WHERE session_key = ?`;
      yield* waitFor(transaction.change(watched, [from, to]));
    },
  };
}

/** Rewrites all tables one after the other, each locked meanwhile: a plain `VACUUM` leaves deleted bytes on their pages. */
export async function rewriteTables(handle: PostgresHandle): Promise<void> {
  for (const table of Object.keys(UNSAMPLED_COLUMNS)) await handle.write(`VACUUM (FULL) ${handle.schema}.${table}`);
  // Earlier versions of Skein left statistics. Only a superuser may rewrite this table; for others, PostgreSQL skips it.
  await handle.write("VACUUM (FULL) pg_catalog.pg_statistic");
}

/**
 * Removes the planner statistics of columns with texts, which contain samples of the texts. Stores of earlier versions have
 * some, and so does a store whose administrator has enabled them. Setting the type of a column, even to the same type, drops
 * its statistics without rewriting the table.
 */
export async function clearStatistics(handle: PostgresHandle): Promise<void> {
  const sampled = await handle.rows<{ tablename: string; attname: string }>(
    "SELECT tablename, attname FROM pg_stats WHERE schemaname = trim(both '\"' from $1::text)",
    [handle.schema],
  );
  for (const { tablename, attname } of sampled) {
    const type = UNSAMPLED_COLUMNS[tablename]?.[attname];
    if (type === undefined) continue;
    const change = `ALTER COLUMN ${attname} SET STATISTICS 0, ALTER COLUMN ${attname} TYPE ${type}`;
    await handle.write(`ALTER TABLE ${handle.schema}.${tablename} ${change}`);
  }
}

/** Counts of rows that belong to no session, or to deleted entries of one. */
export function leftoversOf({ schema }: PostgresHandle): readonly LeftoverCount[] {
  const none = `NOT EXISTS (SELECT 1 FROM ${schema}.sessions WHERE key = session_key)`;
  const rows = ["entries", "heads"].map((table) => ({
    what: `rows of ${table}`,
    sql: `SELECT count(*) AS count FROM ${schema}.${table} WHERE ${none}`,
  }));
  const sql = `SELECT count(*) AS count FROM ${schema}.search_index AS text WHERE NOT EXISTS (
      SELECT 1 FROM ${schema}.sessions JOIN ${schema}.heads ON heads.session_key = key
      WHERE key = text.session_key
        AND (block < 0 AND id IS NOT NULL OR block >= 0 AND block * ${SEARCH_BLOCK_ENTRIES} < version)
    )`;
  return [...rows, { what: "rows of the search index", sql }];
}
