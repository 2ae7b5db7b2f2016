import type { Leftover } from "../sql/sql-eraser.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";

const TABLES = ["sessions", "heads", "entries", "session_parents", "checkpoints", "search_index", "marks"];

/** Writes all tables anew, one after the other, each locked while it lasts: a plain `VACUUM` leaves bytes on their pages. */
export async function rewriteTables(handle: PostgresHandle): Promise<void> {
  for (const table of TABLES) await handle.write(`VACUUM (FULL) ${handle.schema}.${table}`);
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
