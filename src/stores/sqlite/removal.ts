import type { UndeleteOptions } from "../../session/store.ts";
import { checkOpen } from "./check-open.ts";
import type { SearchIndex } from "./search-index.ts";
import { SEQ_MAX } from "../rows/segments.ts";
import { boundsOf, IN_SEGMENT } from "./segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { LoadedSession } from "./session-log.ts";
import type { Settling } from "./settling.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

interface RemovedRow {
  readonly key: number;
  readonly id: string | null;
  readonly origin_key: number | null;
  readonly origin_version: number;
}

/**
 * Deletes sessions, brings them back, and purges them, sparing what forks build on.
 *
 * What a purge frees is used again by later appends. The file itself only shrinks with `VACUUM`: keeping it able to
 * shrink by itself would make every append write more.
 */
export class Removal {
  readonly #handle: SqliteHandle;
  readonly #cache: SessionCache<LoadedSession>;
  readonly #settling: Settling;
  readonly #search: SearchIndex | null;
  readonly #clock: () => Date;

  constructor(
    handle: SqliteHandle,
    parts: { cache: SessionCache<LoadedSession>; settling: Settling; search: SearchIndex | null; clock: () => Date },
  ) {
    this.#handle = handle;
    this.#cache = parts.cache;
    this.#settling = parts.settling;
    this.#search = parts.search;
    this.#clock = parts.clock;
  }

  delete(sessionId: string): boolean {
    return this.#handle.transaction(() => {
      const row = this.#handle
        .prepare("SELECT key FROM sessions WHERE id = ? AND deleted_at IS NULL")
        .get<{ key: number }>([sessionId]);
      if (row === undefined) return false;
      // This also takes it out of `unsettled`, so that no process can append to it any more.
      this.#settling.settle(row.key);
      this.#handle.prepare("DELETE FROM leases WHERE session_key = ?").run([row.key]);
      this.#handle
        .prepare("UPDATE sessions SET deleted_at = ? WHERE key = ?")
        .run([this.#clock().toISOString(), row.key]);
      return true;
    });
  }

  undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): boolean {
    return this.#handle.transaction(() => {
      const row = this.#handle
        .prepare("SELECT key, user_id, status FROM sessions WHERE id = ? AND deleted_at IS NOT NULL")
        .get<{ key: number; user_id: string | null; status: string }>([sessionId]);
      if (row === undefined) return false;
      const { key, user_id: userId, status } = row;
      if (status === "active" || status === "suspended") checkOpen(this.#handle, userId, maxOpenPerUser);
      return this.#handle.prepare("UPDATE sessions SET deleted_at = NULL WHERE key = ?").run([key]) > 0;
    });
  }

  purge(before: string): number {
    const rows = this.#handle
      .prepare("SELECT key, id FROM sessions WHERE deleted_at < ? AND id IS NOT NULL")
      .all<{ key: number; id: string }>([before]);
    let purged = 0;
    for (const { key, id } of rows) {
      if (this.#handle.transaction(() => this.#purgeOne(key, before))) purged += 1;
      this.#cache.forget(id);
    }
    return purged;
  }

  /** False when the session was brought back meanwhile. */
  #purgeOne(key: number, before: string): boolean {
    const changes = this.#handle
      .prepare(
        `UPDATE sessions SET id = NULL, user_id = NULL, cwd = NULL, name = NULL, header = '{}'
         WHERE key = ? AND deleted_at < ? AND id IS NOT NULL`,
      )
      .run([key, before]);
    if (changes === 0) return false;
    for (const table of ["checkpoints", "session_parents", "leases"]) {
      this.#handle.prepare(`DELETE FROM ${table} WHERE session_key = ?`).run([key]);
    }
    this.#search?.removeSession(key);
    this.#collect(key);
    return true;
  }

  /** Removes the entries of a purged session that no fork takes, its row when there is no fork, and so on upwards. */
  #collect(start: number): void {
    const select = this.#handle.prepare("SELECT key, id, origin_key, origin_version FROM sessions WHERE key = ?");
    let row = select.get<RemovedRow>([start]);
    // A session's origin has a smaller key, so this ends.
    while (row !== undefined && row.id === null) {
      const needed = this.#handle
        .prepare("SELECT max(origin_version) AS version FROM sessions WHERE origin_key = ?")
        .get<{ version: number | null }>([row.key])?.version;
      this.#removeEntries(row.key, needed ?? row.origin_version);
      if (needed !== null && needed !== undefined) {
        const cut = "UPDATE sessions SET version = ?, indexed = min(indexed, ?) WHERE key = ?";
        this.#handle.prepare(cut).run([needed, needed, row.key]);
        return;
      }
      this.#handle.prepare("DELETE FROM sessions WHERE key = ?").run([row.key]);
      row = row.origin_key === null ? undefined : select.get<RemovedRow>([row.origin_key]);
    }
  }

  #removeEntries(key: number, from: number): void {
    this.#search?.removeEntries(key, from);
    const bounds = boundsOf({ key, start: from, end: SEQ_MAX });
    this.#handle
      .prepare(
        `DELETE FROM entry_ids WHERE session_key = ? AND id IN
           (SELECT id FROM entries WHERE ${IN_SEGMENT})`,
      )
      .run([key, ...bounds]);
    this.#handle.prepare(`DELETE FROM entries WHERE ${IN_SEGMENT}`).run(bounds);
  }
}
