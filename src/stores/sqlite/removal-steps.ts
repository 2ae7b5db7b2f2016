import { ask } from "../rows/asking.ts";
import type { RemovalSteps } from "../sql/removal.ts";
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
    *hide(inside, sessionIds, at) {
      const select = `SELECT key FROM sessions WHERE id IN (${sessionIds.map(() => "?").join(", ")}) AND deleted_at IS NULL`;
      const rows = yield* ask(inside.rows<{ key: number }>(select, sessionIds));
      for (const { key } of rows) {
        // This also takes it out of `unsettled`, so that no process can append to it any more.
        settle(handle, key);
        yield* ask(inside.change("DELETE FROM leases WHERE session_key = ?", [key]));
        yield* ask(inside.change("UPDATE sessions SET deleted_at = ? WHERE key = ?", [at, key]));
      }
      return rows.length > 0;
    },
    *cut(inside, key, version) {
      search?.removeFrom(key, version);
      const ids =
        "DELETE FROM entry_ids WHERE session_key = ? AND id IN (SELECT id FROM entries WHERE session_key = ? AND seq >= ?)";
      yield* ask(inside.change(ids, [key, key, version]));
      yield* ask(inside.change("DELETE FROM entries WHERE session_key = ? AND seq >= ?", [key, version]));
      const cut = "UPDATE sessions SET name = NULL, version = ?, indexed = min(indexed, ?) WHERE key = ?";
      yield* ask(inside.change(cut, [version, version, key]));
    },
    *removeAll(inside, keys) {
      for (const key of JSON.parse(keys) as readonly number[]) search?.removeFrom(key, 0);
      for (const table of ["entry_ids", "entries"])
        yield* ask(inside.change(`DELETE FROM ${table} WHERE session_key ${handle.dialect.inKeys}`, [keys]));
    },
    *handOver() {},
  };
}
