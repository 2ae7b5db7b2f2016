import type { DriverPurge } from "../../session/store-driver.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import { sessionLimitsOf } from "../complete/session-limits.ts";
import { END_OF_TIME } from "../complete/valid-arguments.ts";
import { type Asking, ask } from "../rows/asking.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { Segment } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkLimits } from "./make-limits.ts";
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

/** What a store does itself when sessions are removed, each in the transaction given. */
export interface RemovalSteps {
  /** Hides live sessions from a time on, and lets nobody append to them or hold them any more; false when there is none. */
  hide(inside: SqlRunner, sessionIds: readonly string[], at: string): Asking<boolean>;
  /** Lets a purged session end at a position, as forks take nothing after it, and forgets what is said of it beside. */
  cut(inside: SqlRunner, key: number, version: number): Asking<void>;
  /** Removes all of some sessions but for their rows, checkpoints and parents; the keys are JSON. */
  removeAll(inside: SqlRunner, keys: string): Asking<void>;
  /** Leaves to another row what a session's own has beside its entries and checkpoints. */
  handOver(inside: SqlRunner, from: number, to: number): Asking<void>;
}

/** Deletes sessions, brings them back, and purges them, sparing what forks build on. */
export class Removal {
  readonly #database: SqlDatabase;
  readonly #sessions: string;
  readonly #steps: RemovalSteps;
  readonly #cache: SessionCache<RowSession<Segment>>;
  readonly #clock: () => Date;

  constructor(
    database: SqlDatabase,
    parts: { steps: RemovalSteps; cache: SessionCache<RowSession<Segment>>; clock: () => Date },
  ) {
    this.#database = database;
    this.#sessions = `${database.dialect.prefix}sessions`;
    this.#steps = parts.steps;
    this.#cache = parts.cache;
    this.#clock = parts.clock;
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.#database.enclose((inside) => this.#steps.hide(inside, [sessionId], this.#clock().toISOString()));
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    const { dialect } = this.#database;
    const sessions = this.#sessions;
    return this.#database.enclose(function* (inside) {
      const select = `SELECT key, user_id, status FROM ${sessions} WHERE id = ? AND deleted_at IS NOT NULL ${dialect.forUpdate}`;
      const [row] = yield* ask(
        inside.rows<{ key: number; user_id: string | null; status: string }>(select, [sessionId]),
      );
      if (row === undefined) return false;
      const { key, user_id: userId, status } = row;
      if (status === "active" || status === "suspended")
        yield* checkLimits(dialect, inside, sessionLimitsOf({ userId, forkedFrom: null }, options));
      return (yield* ask(inside.change(`UPDATE ${sessions} SET deleted_at = NULL WHERE key = ?`, [key]))) > 0;
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
      purged += await this.#database.enclose((inside) => this.#purge(inside, this.#takeIds(inside, [id], before)));
      this.#cache.forget(id);
      // A database that answers at once would otherwise leave nobody else a turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return purged;
  }

  /** Removes sessions for good, deleted or not, in one transaction. */
  async remove(sessionIds: readonly string[]): Promise<void> {
    await this.#database.enclose((inside) => this.#purge(inside, this.vacate(inside, sessionIds)));
    for (const id of sessionIds) this.#cache.forget(id);
  }

  /** Takes the ids of sessions from their rows, so that other rows can have them; `handOver` must follow. The rows' keys. */
  *vacate(inside: SqlRunner, sessionIds: readonly string[]): Asking<readonly number[]> {
    yield* this.#steps.hide(inside, sessionIds, this.#clock().toISOString());
    return yield* this.#takeIds(inside, sessionIds, END_OF_TIME);
  }

  /** Leaves to the row that has a session's id now what the one before has, but for entries that forks take from it. */
  *handOver(inside: SqlRunner, from: number, to: number): Asking<void> {
    const move = `UPDATE ${this.#database.dialect.prefix}checkpoints SET session_key = ? WHERE session_key = ?`;
    yield* ask(inside.change(move, [to, from]));
    yield* this.#steps.handOver(inside, from, to);
    yield* this.#remove(inside, [from]);
  }

  /** Removes what belongs to the keys that ids were taken from; how many there are. */
  *#purge(inside: SqlRunner, taking: Asking<readonly number[]>): Asking<number> {
    const keys = yield* taking;
    yield* this.#remove(inside, keys);
    return keys.length;
  }

  /** Not of sessions that were brought back, or purged by someone else, meanwhile. */
  *#takeIds(inside: SqlRunner, sessionIds: readonly string[], before: string): Asking<readonly number[]> {
    const { forUpdate, inKeys } = this.#database.dialect;
    const some = sessionIds.map(() => "?").join(", ");
    // By id alone: an index of deleted sessions is full of those that were purged a moment ago, and PostgreSQL takes it for empty.
    const select = `SELECT key, deleted_at FROM ${this.#sessions} WHERE id IN (${some}) ORDER BY key ${forUpdate}`;
    const rows = yield* ask(inside.rows<RemovedRow>(select, sessionIds));
    const keys = rows.flatMap(({ key, deleted_at: at }) => (at !== null && at < before ? [Number(key)] : []));
    const take = `UPDATE ${this.#sessions} SET id = NULL, user_id = NULL, cwd = NULL, header = '{}' WHERE key ${inKeys}`;
    yield* ask(inside.change(take, [JSON.stringify(keys)]));
    return keys;
  }

  *#remove(inside: SqlRunner, keys: readonly number[]): Asking<void> {
    const { prefix, inKeys } = this.#database.dialect;
    for (const table of ["checkpoints", "session_parents"]) {
      const sql = `DELETE FROM ${prefix}${table} WHERE session_key ${inKeys}`;
      yield* ask(inside.change(sql, [JSON.stringify(keys)]));
    }
    // A session's origin has a smaller key, so this ends.
    for (let next = keys; next.length > 0; ) next = yield* this.#collect(inside, next);
  }

  /** Removes what no fork takes of purged sessions. The origins of those that are gone as a whole: their turn is next. */
  *#collect(inside: SqlRunner, keys: readonly number[]): Asking<readonly number[]> {
    const sessions = this.#sessions;
    const { forUpdate, inKeys } = this.#database.dialect;
    const select = `SELECT key, id, origin_key FROM ${sessions} WHERE key ${inKeys} ORDER BY key ${forUpdate}`;
    const rows = yield* ask(inside.rows<RemovedRow>(select, [JSON.stringify(keys)]));
    // Only now that the rows are held: a fork may have been made meanwhile.
    const forks = `SELECT origin_key AS key, max(origin_version) AS version FROM ${sessions}
      WHERE origin_key ${inKeys} GROUP BY origin_key`;
    const taken = yield* ask(inside.rows<ForkedRow>(forks, [JSON.stringify(keys)]));
    const needed = new Map(taken.map(({ key, version }) => [Number(key), Number(version)]));
    const gone: number[] = [];
    const origins: number[] = [];
    for (const { key, id, origin_key: origin } of rows) {
      if (id !== null) continue;
      const version = needed.get(Number(key));
      if (version !== undefined) yield* this.#steps.cut(inside, Number(key), version);
      else gone.push(Number(key));
      if (version === undefined && origin !== null) origins.push(Number(origin));
    }
    yield* this.#steps.removeAll(inside, JSON.stringify(gone));
    yield* ask(inside.change(`DELETE FROM ${sessions} WHERE key ${inKeys}`, [JSON.stringify(gone)]));
    return origins;
  }
}
