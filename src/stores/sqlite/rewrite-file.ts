import type { Leftover } from "../sql/sql-eraser.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import { hasSearchIndex } from "./search-index.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/**
 * Writes the database file anew without what was removed from it, and empties the write-ahead log.
 *
 * @throws {SessionError} `SESSION_BUSY` while others write, `STORE_FAILED` when there is no room for it.
 */
export async function rewriteFile(handle: SqliteHandle): Promise<void> {
  handle.exec("PRAGMA secure_delete = ON");
  // An index of texts keeps what was removed from it until its parts are joined.
  if (hasSearchIndex(handle)) handle.exec("INSERT INTO search_index (search_index) VALUES ('optimize')");
  handle.exec("VACUUM");
  // Until the write-ahead log is home, the file is as long as it was, and the log has what was removed.
  handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Rows that belong to no session. */
export function leftoversOf(handle: SqliteHandle): readonly Leftover[] {
  const none = "NOT EXISTS (SELECT 1 FROM sessions WHERE key = session_key)";
  const found: Leftover[] = ["entries", "entry_ids"].map((table) => ({
    what: `rows of ${table}`,
    sql: `SELECT count(*) AS count FROM ${table} WHERE ${none}`,
  }));
  if (!hasSearchIndex(handle)) return found;
  const there = `iif(text.id & ${SEQ_MAX} = ${SEQ_MAX}, sessions.id IS NOT NULL, text.id & ${SEQ_MAX} < version)`;
  const sql = `SELECT count(*) AS count FROM search_index_docsize AS text
    WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE key = text.id >> 32 AND ${there})`;
  return [...found, { what: "rows of the search index", sql }];
}
