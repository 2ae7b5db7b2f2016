import type { DriverPurge } from "../../session/store-driver.ts";
import type { UndeleteOptions } from "../../session/store.ts";
import { limitsOf } from "../complete/check-limits.ts";
import { END_OF_TIME } from "../complete/valid-arguments.ts";
import { type Asking, ask } from "../rows/asking.ts";
import type { RowSession } from "../rows/row-port.ts";
import type { Segment } from "../rows/segments.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import { checkLimits } from "./make-limits.ts";
import type { SqlDatabase, SqlRunner } from "./sql-database.ts";

interface RemovedRow {
  readonly id: string | null;
  readonly origin_key: number | string | null;
  readonly origin_version: number | string;
}

/** What a store does itself when sessions are removed, each in the transaction given. */
export interface RemovalSteps {
  /** Hides a live session from a time on, and lets nobody append to it or hold it any more; false when there is none. */
  hide(inside: SqlRunner, sessionId: string, at: string): Asking<boolean>;
  /** Forgets what is said of a session beside its entries: its name, and what a search finds it by. */
  forget(inside: SqlRunner, key: number): Asking<void>;
  /** Removes a purged session's entries from a position on, from wherever they are. */
  removeEntries(inside: SqlRunner, key: number, from: number): Asking<void>;
  /** Lets a purged session end at a position, as forks take nothing after it. */
  cut(inside: SqlRunner, key: number, version: number): Asking<void>;
  /** Removes what is left of a session beside its row. */
  removeRest(inside: SqlRunner, key: number): Asking<void>;
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
    return this.#database.enclose((inside) => this.#steps.hide(inside, sessionId, this.#clock().toISOString()));
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
        yield* checkLimits(dialect, inside, limitsOf({ userId, forkedFrom: null }, options));
      return (yield* ask(inside.change(`UPDATE ${sessions} SET deleted_at = NULL WHERE key = ?`, [key]))) > 0;
    });
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    const named = [sessionId === undefined ? "" : "AND id = ?", userId === undefined ? "" : "AND user_id = ?"];
    const rows = await this.#database.rows<{ key: number | string; id: string }>(
      `SELECT key, id FROM ${this.#sessions} WHERE deleted_at < ? AND id IS NOT NULL ${named.join(" ")} ORDER BY key`,
      [before, ...[sessionId, userId].filter((value) => value !== undefined)],
    );
    let purged = 0;
    for (const { key, id } of rows) {
      if (await this.#database.enclose((inside) => this.#purgeOne(inside, Number(key), before))) purged += 1;
      this.#cache.forget(id);
      // A database that answers at once would otherwise leave nobody else a turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return purged;
  }

  /** Takes a live session's id from its row, so that another row can have it; `handOver` must follow. */
  *vacate(inside: SqlRunner, key: number, sessionId: string): Asking<void> {
    yield* this.#steps.hide(inside, sessionId, this.#clock().toISOString());
    yield* this.#takeId(inside, key, END_OF_TIME);
  }

  /** Leaves to the row that has a session's id now what the one before has, but for entries that forks take from it. */
  *handOver(inside: SqlRunner, from: number, to: number): Asking<void> {
    const move = `UPDATE ${this.#database.dialect.prefix}checkpoints SET session_key = ? WHERE session_key = ?`;
    yield* ask(inside.change(move, [to, from]));
    yield* this.#steps.handOver(inside, from, to);
    yield* this.#remove(inside, from);
  }

  /** False when the session was brought back, or purged by someone else, meanwhile. */
  *#purgeOne(inside: SqlRunner, key: number, before: string): Asking<boolean> {
    if (!(yield* this.#takeId(inside, key, before))) return false;
    yield* this.#remove(inside, key);
    return true;
  }

  *#takeId(inside: SqlRunner, key: number, before: string): Asking<boolean> {
    const take = `UPDATE ${this.#sessions} SET id = NULL, user_id = NULL, cwd = NULL, header = '{}'
      WHERE key = ? AND deleted_at < ? AND id IS NOT NULL`;
    return (yield* ask(inside.change(take, [key, before]))) > 0;
  }

  *#remove(inside: SqlRunner, key: number): Asking<void> {
    for (const table of ["checkpoints", "session_parents"]) {
      yield* ask(inside.change(`DELETE FROM ${this.#database.dialect.prefix}${table} WHERE session_key = ?`, [key]));
    }
    yield* this.#steps.forget(inside, key);
    yield* this.#collect(inside, key);
  }

  /** Removes the entries of a purged session that no fork takes, its row when there is no fork, and so on upwards. */
  *#collect(inside: SqlRunner, start: number): Asking<void> {
    const sessions = this.#sessions;
    const select = `SELECT id, origin_key, origin_version FROM ${sessions} WHERE key = ? ${this.#database.dialect.forUpdate}`;
    const forked = `SELECT max(origin_version) AS version FROM ${sessions} WHERE origin_key = ?`;
    let next: number | null = start;
    // A session's origin has a smaller key, so this ends.
    while (next !== null) {
      const [row]: readonly RemovedRow[] = yield* ask(inside.rows<RemovedRow>(select, [next]));
      if (row === undefined || row.id !== null) return;
      const [forks] = yield* ask(inside.rows<{ version: number | string | null }>(forked, [next]));
      const needed = forks?.version ?? null;
      yield* this.#steps.removeEntries(inside, next, Number(needed ?? row.origin_version));
      if (needed !== null) return yield* this.#steps.cut(inside, next, Number(needed));
      yield* this.#steps.removeRest(inside, next);
      yield* ask(inside.change(`DELETE FROM ${sessions} WHERE key = ?`, [next]));
      next = row.origin_key === null ? null : Number(row.origin_key);
    }
  }
}
