import type { DriverPurge } from "../../session/store-driver.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import { sessionLimitsOf } from "../complete/session-limits.ts";
import { END_OF_TIME } from "../complete/valid-arguments.ts";
import { type Coroutine, waitFor } from "../rows/coroutine.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { Segment } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkSqlLimits } from "./sql-limits.ts";
import type { SqlDatabase, SqlRunner } from "./sql-database.ts";

interface RemovedRow {
  readonly key: number | string;
  readonly id: string | null;
  readonly deleted_at: string | null;
  readonly origin_key: number | string | null;
}

interface ForkedRow {
  readonly key: number | string;
  readonly version: number | string;
}

/** The statements for removing a session that differ between stores. Each runs in the given transaction. */
export interface RemovalStatements {
  /** Marks live sessions as deleted, ends their leases and prevents appends. Returns false if none is live. */
  markDeleted(transaction: SqlRunner, sessionIds: readonly string[], at: string): Coroutine<boolean>;
  /** Deletes the entries of a purged session from `version` on, and its id, name and directory from the search index. */
  truncate(transaction: SqlRunner, key: number, version: number): Coroutine<void>;
  /** Deletes everything of some sessions except their rows in `sessions`, `checkpoints` and `session_parents`. `keys` is JSON. */
  deleteRows(transaction: SqlRunner, keys: string): Coroutine<void>;
  /** Copies columns of a session that must survive an erasure, such as the expiry of its watchers, to the row of another key. */
  moveRows(transaction: SqlRunner, from: number, to: number): Coroutine<void>;
}

/** Deletes, undeletes and purges sessions. A purge keeps the entries that forks begin with. */
export class Removal {
  readonly #database: SqlDatabase;
  readonly #sessions: string;
  readonly #statements: RemovalStatements;
  readonly #cache: SessionCache<RowSession<Segment>>;
  readonly #clock: () => Date;

  constructor(
    database: SqlDatabase,
    parts: { statements: RemovalStatements; cache: SessionCache<RowSession<Segment>>; clock: () => Date },
  ) {
    this.#database = database;
    this.#sessions = `${database.dialect.prefix}sessions`;
    this.#statements = parts.statements;
    this.#cache = parts.cache;
    this.#clock = parts.clock;
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#database.transact((transaction) =>
      this.#statements.markDeleted(transaction, [sessionId], this.#clock().toISOString()),
    );
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    const { dialect } = this.#database;
    const sessions = this.#sessions;
    return this.#database.transact(function* (transaction) {
      const select = `SELECT key, user_id, status FROM ${sessions} WHERE id = ? AND deleted_at IS NOT NULL ${dialect.forUpdate}`;
      const [row] = yield* waitFor(
        transaction.rows<{ key: number; user_id: string | null; status: string }>(select, [sessionId]),
      );
      if (row === undefined) return false;
      const { key, user_id: userId, status } = row;
      if (status === "active" || status === "suspended")
        yield* checkSqlLimits(dialect, transaction, sessionLimitsOf({ userId, forkedFrom: null }, options));
      return (yield* waitFor(transaction.change(`UPDATE ${sessions} SET deleted_at = NULL WHERE key = ?`, [key]))) > 0;
    });
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    const named = [sessionId === undefined ? "" : "AND id = ?", userId === undefined ? "" : "AND user_id = ?"];
    const rows = await this.#database.rows<{ id: string }>(
      `SELECT id FROM ${this.#sessions} WHERE deleted_at < ? AND id IS NOT NULL ${named.join(" ")} ORDER BY key`,
      [before, ...[sessionId, userId].filter((value) => value !== undefined)],
    );
    let purged = 0;
    for (const { id } of rows) {
      purged += await this.#database.transact((transaction) =>
        this.#purge(transaction, this.#freeIds(transaction, [id], before)),
      );
      this.#cache.forget(id);
      // A synchronous database would otherwise block the event loop until all are purged.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return purged;
  }

  /** Purges sessions, whether deleted or not, in one transaction. */
  async remove(sessionIds: readonly string[]): Promise<void> {
    await this.#database.transact((transaction) => this.#purge(transaction, this.releaseIds(transaction, sessionIds)));
    for (const id of sessionIds) this.#cache.forget(id);
  }

  /** Frees the ids of sessions for new rows and returns the keys of the old rows. Call `moveRows` afterwards. */
  *releaseIds(transaction: SqlRunner, sessionIds: readonly string[]): Coroutine<readonly number[]> {
    yield* this.#statements.markDeleted(transaction, sessionIds, this.#clock().toISOString());
    return yield* this.#freeIds(transaction, sessionIds, END_OF_TIME);
  }

  /** Moves checkpoints and watchers from the old row of a session to its new one, and deletes the old entries that no fork needs. */
  *moveRows(transaction: SqlRunner, from: number, to: number): Coroutine<void> {
    const move = `UPDATE ${this.#database.dialect.prefix}checkpoints SET session_key = ? WHERE session_key = ?`;
    yield* waitFor(transaction.change(move, [to, from]));
    yield* this.#statements.moveRows(transaction, from, to);
    yield* this.#remove(transaction, [from]);
  }

  /** Purges the sessions whose ids `freeing` frees, and returns how many there are. */
  *#purge(transaction: SqlRunner, freeing: Coroutine<readonly number[]>): Coroutine<number> {
    const keys = yield* freeing;
    yield* this.#remove(transaction, keys);
    return keys.length;
  }

  /** Frees the ids of sessions deleted before a time, and returns their keys. Skips those undeleted or purged in the meantime. */
  *#freeIds(transaction: SqlRunner, sessionIds: readonly string[], before: string): Coroutine<readonly number[]> {
    const { forUpdate, inKeys } = this.#database.dialect;
    const some = sessionIds.map(() => "?").join(", ");
    // Selects by id only. With a condition on `deleted_at`, PostgreSQL would choose the index of deleted sessions, which it
    // believes to be empty although it is full of dead rows of sessions purged a moment ago.
    const select = `SELECT key, deleted_at FROM ${this.#sessions} WHERE id IN (${some}) ORDER BY key ${forUpdate}`;
    const rows = yield* waitFor(transaction.rows<RemovedRow>(select, sessionIds));
    const keys = rows.flatMap(({ key, deleted_at: at }) => (at !== null && at < before ? [Number(key)] : []));
    const free = `UPDATE ${this.#sessions} SET id = NULL, user_id = NULL, cwd = NULL, header = '{}' WHERE key ${inKeys}`;
    yield* waitFor(transaction.change(free, [JSON.stringify(keys)]));
    return keys;
  }

  *#remove(transaction: SqlRunner, keys: readonly number[]): Coroutine<void> {
    const { prefix, inKeys } = this.#database.dialect;
    for (const table of ["checkpoints", "session_parents"]) {
      const sql = `DELETE FROM ${prefix}${table} WHERE session_key ${inKeys}`;
      yield* waitFor(transaction.change(sql, [JSON.stringify(keys)]));
    }
    // The origin of a session has a smaller key, so this loop ends.
    for (let next = keys; next.length > 0; ) next = yield* this.#collect(transaction, next);
  }

  /** Deletes the parts of purged sessions that no fork needs. Returns the origins of those that were deleted completely, to be collected next. */
  *#collect(transaction: SqlRunner, keys: readonly number[]): Coroutine<readonly number[]> {
    const sessions = this.#sessions;
    const { forUpdate, inKeys } = this.#database.dialect;
    const select = `SELECT key, id, origin_key FROM ${sessions} WHERE key ${inKeys} ORDER BY key ${forUpdate}`;
    const rows = yield* waitFor(transaction.rows<RemovedRow>(select, [JSON.stringify(keys)]));
    // Counted after the rows are locked, so that a fork created in the meantime is seen.
    const forks = `SELECT origin_key AS key, max(origin_version) AS version FROM ${sessions}
      WHERE origin_key ${inKeys} GROUP BY origin_key`;
    const forked = yield* waitFor(transaction.rows<ForkedRow>(forks, [JSON.stringify(keys)]));
    const needed = new Map(forked.map(({ key, version }) => [Number(key), Number(version)]));
    const unused: number[] = [];
    const origins: number[] = [];
    for (const { key, id, origin_key: origin } of rows) {
      if (id !== null) continue;
      const version = needed.get(Number(key));
      if (version !== undefined) yield* this.#statements.truncate(transaction, Number(key), version);
      else unused.push(Number(key));
      if (version === undefined && origin !== null) origins.push(Number(origin));
    }
    yield* this.#statements.deleteRows(transaction, JSON.stringify(unused));
    yield* waitFor(transaction.change(`DELETE FROM ${sessions} WHERE key ${inKeys}`, [JSON.stringify(unused)]));
    return origins;
  }
}
