import { type Asking, ask } from "../rows/asking.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import type { RemovalSteps } from "../sql/removal.ts";
import type { SqlRunner } from "../sql/sql-database.ts";
import { IN_SEGMENT } from "./schema.ts";
import type { SearchIndex } from "./search-index.ts";
import { settle } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/**
 * What removing sessions takes in SQLite.
 *
 * What a purge frees is used again by later appends. The file itself only shrinks with `VACUUM`: keeping it able to
 * shrink by itself would make every append write more.
 */
export function removalSteps(handle: SqliteHandle, search: SearchIndex | null): RemovalSteps {
  return {
    *hide(inside: SqlRunner, sessionId: string, at: string): Asking<boolean> {
      const select = "SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL";
      const [row] = yield* ask(inside.rows<{ key: number }>(select, [sessionId]));
      if (row === undefined) return false;
      // This also takes it out of `unsettled`, so that no process can append to it any more.
      settle(handle, row.key);
      yield* ask(inside.change("DELETE FROM leases WHERE session_key = ?", [row.key]));
      yield* ask(inside.change("UPDATE sessions SET deleted_at = ? WHERE key = ?", [at, row.key]));
      return true;
    },
    *forget(inside: SqlRunner, key: number): Asking<void> {
      yield* ask(inside.change("UPDATE sessions SET name = NULL WHERE key = ?", [key]));
      search?.removeSession(key);
    },
    *removeEntries(inside: SqlRunner, key: number, from: number): Asking<void> {
      search?.removeEntries(key, from);
      const bounds = [key, from, SEQ_MAX];
      const ids = `DELETE FROM entry_ids WHERE session_key = ? AND id IN (SELECT id FROM entries WHERE ${IN_SEGMENT})`;
      yield* ask(inside.change(ids, [key, ...bounds]));
      yield* ask(inside.change(`DELETE FROM entries WHERE ${IN_SEGMENT}`, bounds));
    },
    *cut(inside: SqlRunner, key: number, version: number): Asking<void> {
      const cut = "UPDATE sessions SET version = ?, indexed = min(indexed, ?) WHERE key = ?";
      yield* ask(inside.change(cut, [version, version, key]));
    },
    *removeRest(): Asking<void> {},
    *handOver(): Asking<void> {},
  };
}
