import type { Leftover } from "../sql/sql-eraser.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES, UNSAMPLED_COLUMNS } from "./schema.ts";

/** Writes all tables anew, one after the other, each locked while it lasts: a plain `VACUUM` leaves bytes on their pages. */
export async function rewriteTables(handle: PostgresHandle): Promise<void> {
  for (const table of Object.keys(UNSAMPLED_COLUMNS)) await handle.write(`VACUUM (FULL) ${handle.schema}.${table}`);
  // Statistics of a version that still made some. Only a superuser may do this; for others PostgreSQL leaves the table out.
  await handle.write("VACUUM (FULL) pg_catalog.pg_statistic");
}

/**
 * Removes the statistics of columns that hold words: a store of an earlier version has some, and so has one whose
 * administrator has switched them on. A column whose type is set, even to the same one, loses its statistics; nothing is rewritten.
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

/** Rows that belong to no session, or to a part of its log that is gone. */
export function leftoversOf({ schema }: PostgresHandle): readonly Leftover[] {
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
