import { waitFor } from "../rows/coroutine.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import type { RemovalStatements } from "../sql/removal.ts";
import type { LeftoverCount } from "../sql/sql-driver.ts";
import { refreshSessionRow } from "./refresh-session-rows.ts";
import { hasSearchIndex, type SearchIndex } from "./search-index.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/**
 * The statements that remove sessions from SQLite.
 *
 * Later appends reuse the pages that a purge frees. The file itself shrinks only with `VACUUM`: the alternative,
 * `auto_vacuum`, would make every append write more.
 */
export function removalStatements(handle: SqliteHandle, search: SearchIndex | null): RemovalStatements {
  return {
    *markDeleted(transaction, sessionIds, at) {
      const select = `SELECT key FROM sessions WHERE id IN (${sessionIds.map(() => "?").join(", ")}) AND deleted_at IS NULL`;
      const rows = yield* waitFor(transaction.rows<{ key: number }>(select, sessionIds));
      for (const { key } of rows) {
        // This also removes it from `unsettled`, so that no process can append to it: see `INSERT` in sqlite-port.ts.
        refreshSessionRow(handle, key);
        yield* waitFor(transaction.change("DELETE FROM leases WHERE session_key = ?", [key]));
        yield* waitFor(transaction.change("UPDATE sessions SET deleted_at = ? WHERE key = ?", [at, key]));
      }
      return rows.length > 0;
    },
    *truncate(transaction, key, version) {
      search?.removeFrom(key, version);
      const ids =
        "DELETE FROM entry_ids WHERE session_key = ? AND id IN (SELECT id FROM entries WHERE session_key = ? AND seq >= ?)";
      yield* waitFor(transaction.change(ids, [key, key, version]));
      yield* waitFor(transaction.change("DELETE FROM entries WHERE session_key = ? AND seq >= ?", [key, version]));
      const cut = "UPDATE sessions SET name = NULL, version = ?, indexed = min(indexed, ?) WHERE key = ?";
      yield* waitFor(transaction.change(cut, [version, version, key]));
    },
    *deleteRows(transaction, keys) {
      for (const key of JSON.parse(keys) as readonly number[]) search?.removeFrom(key, 0);
      for (const table of ["entry_ids", "entries"])
        yield* waitFor(transaction.change(`DELETE FROM ${table} WHERE session_key ${handle.dialect.inKeys}`, [keys]));
    },
    *moveRows() {},
  };
}

/**
 * Rewrites the database file without deleted data, and empties the write-ahead log.
 *
 * @throws {SessionError} `SESSION_BUSY` while others write, `STORE_FAILED` if the disk has no room for the copy.
 */
export async function rewriteFile(handle: SqliteHandle): Promise<void> {
  handle.exec("PRAGMA secure_delete = ON");
  // FTS5 keeps deleted texts until its segments are merged.
  if (hasSearchIndex(handle)) handle.exec("INSERT INTO search_index (search_index) VALUES ('optimize')");
  handle.exec("VACUUM");
  // Before this checkpoint, the file has its old length, and the write-ahead log can still contain deleted data.
  handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Counts of rows that belong to no session. */
export function leftoversOf(handle: SqliteHandle): readonly LeftoverCount[] {
  const none = "NOT EXISTS (SELECT 1 FROM sessions WHERE key = session_key)";
  const found: LeftoverCount[] = ["entries", "entry_ids"].map((table) => ({
    what: `rows of ${table}`,
    sql: `SELECT count(*) AS count FROM ${table} WHERE ${none}`,
  }));
  if (!hasSearchIndex(handle)) return found;
  const there = `iif(text.id & ${SEQ_MAX} = ${SEQ_MAX}, sessions.id IS NOT NULL, text.id & ${SEQ_MAX} < version)`;
  const sql = `SELECT count(*) AS count FROM search_index_docsize AS text
    WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE key = text.id >> 32 AND ${there})`;
  return [...found, { what: "rows of the search index", sql }];
}
