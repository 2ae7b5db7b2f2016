import type { UndeleteOptions } from "../../session/store.ts";
import { checkOpen } from "./check-open.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import { SEARCH_BLOCK_ENTRIES } from "./schema.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { notifyIfWatched } from "./subscriptions.ts";
import { IS_LIVE, type LoadedSession } from "./session-row.ts";

interface RemovedRow {
  readonly key: string;
  readonly id: string | null;
  readonly origin_key: string | null;
  readonly origin_version: string;
}

/** Deletes sessions, brings them back, and purges them, sparing what forks build on. */
export class Removal {
  readonly #handle: PostgresHandle;
  readonly #cache: SessionCache<LoadedSession>;
  readonly #clock: () => Date;

  constructor(handle: PostgresHandle, cache: SessionCache<LoadedSession>, clock: () => Date) {
    this.#handle = handle;
    this.#cache = cache;
    this.#clock = clock;
  }

  async delete(sessionId: string): Promise<boolean> {
    const { schema, channel } = this.#handle;
    const rows = await this.#handle.write(
      `WITH gone AS (
         UPDATE ${schema}.sessions SET deleted_at = $2 WHERE id = $1 AND ${IS_LIVE} RETURNING key
       )
       UPDATE ${schema}.heads SET marked = false, lease_token = NULL, lease_run = NULL, lease_until_ms = NULL
       FROM gone WHERE session_key = key RETURNING key, ${notifyIfWatched(channel)} AS told`,
      [sessionId, this.#clock().toISOString()],
    );
    return rows.length > 0;
  }

  async undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): Promise<boolean> {
    const { schema } = this.#handle;
    return this.#handle.transaction(async (transaction) => {
      const [row] = await transaction.read<{ key: string; user_id: string | null; status: string }>(
        `SELECT key, user_id, status FROM ${schema}.sessions WHERE id = $1 AND deleted_at IS NOT NULL FOR UPDATE`,
        [sessionId],
      );
      if (row === undefined) return false;
      const { key, user_id: userId, status } = row;
      if (status === "active" || status === "suspended") {
        await checkOpen(this.#handle, transaction, userId, maxOpenPerUser);
      }
      await transaction.write(`UPDATE ${schema}.sessions SET deleted_at = NULL WHERE key = $1`, [key]);
      return true;
    });
  }

  async purge(before: string): Promise<number> {
    const rows = await this.#handle.read<{ key: string; id: string }>(
      `SELECT key, id FROM ${this.#handle.schema}.sessions WHERE deleted_at < $1 AND id IS NOT NULL ORDER BY key`,
      [before],
    );
    let purged = 0;
    for (const { key, id } of rows) {
      if (await this.#handle.transaction((transaction) => this.#purgeOne(transaction, Number(key), before)))
        purged += 1;
      this.#cache.forget(id);
    }
    return purged;
  }

  /** False when the session was brought back, or purged by someone else, meanwhile. */
  async #purgeOne(transaction: Transaction, key: number, before: string): Promise<boolean> {
    const { schema } = this.#handle;
    const changed = await transaction.write(
      `UPDATE ${schema}.sessions SET id = NULL, user_id = NULL, cwd = NULL, unsettled = false, header = '{}'
       WHERE key = $1 AND deleted_at < $2 AND id IS NOT NULL RETURNING key`,
      [key, before],
    );
    if (changed.length === 0) return false;
    for (const table of ["checkpoints", "session_parents"]) {
      await transaction.write(`DELETE FROM ${schema}.${table} WHERE session_key = $1`, [key]);
    }
    await transaction.write(`DELETE FROM ${schema}.search_index WHERE session_key = $1 AND block < 0`, [key]);
    await this.#collect(transaction, key);
    return true;
  }

  /** Removes the entries of a purged session that no fork takes, its row when there is no fork, and so on upwards. */
  async #collect(transaction: Transaction, start: number): Promise<void> {
    const { schema } = this.#handle;
    let next: number | null = start;
    // A session's origin has a smaller key, so this ends.
    while (next !== null) {
      const [row]: readonly RemovedRow[] = await transaction.read<RemovedRow>(
        `SELECT key, id, origin_key, origin_version FROM ${schema}.sessions WHERE key = $1 FOR UPDATE`,
        [next],
      );
      if (row === undefined || row.id !== null) return;
      const [forks]: readonly { version: string | null }[] = await transaction.read<{ version: string | null }>(
        `SELECT max(origin_version) AS version FROM ${schema}.sessions WHERE origin_key = $1`,
        [next],
      );
      const needed = forks?.version ?? null;
      await this.#removeEntries(transaction, next, Number(needed ?? row.origin_version));
      if (needed !== null) {
        await transaction.write(
          `WITH cut AS (UPDATE ${schema}.heads SET version = $2, rest = NULL, settings = NULL WHERE session_key = $1)
           UPDATE ${schema}.sessions SET searched = least(searched, $2), unsearched = searched < $2 WHERE key = $1`,
          [next, Number(needed)],
        );
        return;
      }
      await transaction.write(
        `WITH gone AS (DELETE FROM ${schema}.heads WHERE session_key = $1) DELETE FROM ${schema}.sessions WHERE key = $1`,
        [next],
      );
      next = row.origin_key === null ? null : Number(row.origin_key);
    }
  }

  async #removeEntries(transaction: Transaction, key: number, from: number): Promise<void> {
    const { schema } = this.#handle;
    // A block that is kept in part goes on standing for all of it, which only means a needless look.
    await transaction.write(`DELETE FROM ${schema}.search_index WHERE session_key = $1 AND block >= $2`, [
      key,
      Math.ceil(from / SEARCH_BLOCK_ENTRIES),
    ]);
    await transaction.write(`DELETE FROM ${schema}.entries WHERE session_key = $1 AND seq >= $2`, [key, from]);
  }
}
