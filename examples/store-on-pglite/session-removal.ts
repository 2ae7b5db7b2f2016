import type { PGliteInterface, Transaction } from "@electric-sql/pglite";
import type { DriverPurge, UndeleteOptions } from "skein/store";
import { select } from "./database.ts";
import { checkOpen } from "./session-rows.ts";

interface RemovedRow {
  readonly origin_key: number | null;
  readonly origin_version: number;
  /** How many entries its longest fork shares; null without forks. */
  readonly needed: number | null;
}

/** Deletes, undeletes and purges sessions, except the rows that forks share. */
export class SessionRemoval {
  readonly #database: PGliteInterface;

  constructor(database: PGliteInterface) {
    this.#database = database;
  }

  async delete(sessionId: string): Promise<boolean> {
    const deleted = await select(
      this.#database,
      `WITH deleted AS (
         UPDATE skein.sessions SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING key
       ), released AS (DELETE FROM skein.leases USING deleted WHERE session_key = key)
       SELECT key FROM deleted`,
      [sessionId, new Date().toISOString()],
    );
    return deleted.length > 0;
  }

  undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): Promise<boolean> {
    return this.#database.transaction(async (transaction) => {
      const [row] = await select<{ key: number; user_id: string | null; status: string }>(
        transaction,
        "SELECT key, user_id, status FROM skein.sessions WHERE id = $1 AND deleted_at IS NOT NULL",
        [sessionId],
      );
      if (row === undefined) return false;
      const isOpen = row.status === "active" || row.status === "suspended";
      if (isOpen) await checkOpen(transaction, row.user_id, maxOpenPerUser);
      await select(transaction, "UPDATE skein.sessions SET deleted_at = NULL WHERE key = $1", [row.key]);
      return true;
    });
  }

  purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    return this.#database.transaction(async (transaction) => {
      const purged = await select<{ key: number }>(
        transaction,
        `UPDATE skein.sessions SET id = NULL, header = '{}', user_id = NULL, cwd = NULL, parents = '{}'
         WHERE deleted_at < $1 AND id IS NOT NULL AND ($2::text IS NULL OR id = $2)
           AND ($3::text IS NULL OR user_id = $3)
         RETURNING key`,
        [before, sessionId ?? null, userId ?? null],
      );
      for (const { key } of purged) {
        await select(transaction, "DELETE FROM skein.checkpoints WHERE session_key = $1", [key]);
        await collect(transaction, key);
      }
      return purged.length;
    });
  }
}

/** Removes the entries of a purged session that no fork shares, its row if it has no fork, and the same for its purged ancestors. */
async function collect(transaction: Transaction, key: number): Promise<void> {
  const [row] = await select<RemovedRow>(
    transaction,
    `SELECT origin_key, origin_version,
       (SELECT max(origin_version) FROM skein.sessions AS forks WHERE forks.origin_key = purged.key) AS needed
     FROM skein.sessions AS purged WHERE key = $1 AND id IS NULL`,
    [key],
  );
  if (row === undefined) return;
  const keep = row.needed ?? row.origin_version;
  await select(transaction, "DELETE FROM skein.entries WHERE session_key = $1 AND seq >= $2", [key, keep]);
  if (row.needed !== null) return;
  await select(transaction, "DELETE FROM skein.sessions WHERE key = $1", [key]);
  if (row.origin_key !== null) await collect(transaction, row.origin_key);
}
