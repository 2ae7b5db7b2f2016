import { NOTHING_FOUND } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { Checkpoint, StoreEraser } from "../../session/store.ts";
import { planRewrite } from "../complete/plan-rewrite.ts";
import { type Coroutine, waitFor } from "../rows/coroutine.ts";
import { encodePlan } from "../rows/row-encoding.ts";
import type { CheckpointRows } from "./checkpoint-rows.ts";
import type { Removal } from "./removal.ts";
import type { SqlDatabase } from "./sql-database.ts";
import type { SqlParts } from "./sql-driver.ts";
import type { SqlPort, SqlSession } from "./sql-port.ts";

type EraserParts<Session extends SqlSession> = Omit<SqlParts<Session>, "removal"> & {
  readonly removal: Removal;
  readonly checkpoints: CheckpointRows;
};

/** How many session keys one query covers in the search for entries of a user; other work can run between two queries. */
const KEYS_AT_ONCE = 50;

/** Erases in an SQL database: replaces logs, and stores the marks of erasures. */
export class SqlEraser<Session extends SqlSession> implements StoreEraser {
  readonly rewrite: () => Promise<void>;
  readonly clearStatistics: (() => Promise<void>) | undefined;
  readonly #database: SqlDatabase;
  readonly #parts: EraserParts<Session>;
  readonly #marks: string;

  constructor(database: SqlDatabase, parts: EraserParts<Session>) {
    this.#database = database;
    this.#parts = parts;
    this.#marks = `${database.dialect.prefix}marks`;
    this.rewrite = parts.rewrite;
    this.clearStatistics = parts.clearStatistics;
  }

  async replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const { port, cache } = this.#parts;
    try {
      return await port.locked((locked) => this.#replace(locked, sessionId, version, entries));
    } finally {
      cache.forget(sessionId);
    }
  }

  replaceCheckpoint(checkpoint: Checkpoint): Promise<boolean> {
    return this.#parts.checkpoints.replace(checkpoint);
  }

  async *authored(userId: string): AsyncGenerator<readonly string[]> {
    const { prefix, text } = this.#database.dialect;
    const [last] = await this.#database.rows<{ key: number | string | null }>(
      `SELECT max(key) AS key FROM ${prefix}sessions`,
    );
    // A fork, and every fork of it, also contains the entries that it inherited.
    const sql = `WITH RECURSIVE family (key) AS (
        SELECT DISTINCT session_key FROM ${prefix}entries
        WHERE session_key > ? AND session_key <= ? AND ${text("body", "by")} = ?
        UNION SELECT sessions.key FROM ${prefix}sessions JOIN family ON origin_key = family.key
      ) SELECT id FROM ${prefix}sessions JOIN family ON sessions.key = family.key WHERE id IS NOT NULL`;
    for (let after = 0; after < Number(last?.key ?? 0); after += KEYS_AT_ONCE) {
      const rows = await this.#database.rows<{ id: string }>(sql, [after, after + KEYS_AT_ONCE, userId]);
      yield [...new Set([...rows.map(({ id }) => id), ...(await this.#withCheckpointsBy(userId, after))])];
    }
  }

  /** Among the next `KEYS_AT_ONCE` keys, the sessions with a checkpoint that the user made. */
  async #withCheckpointsBy(userId: string, after: number): Promise<readonly string[]> {
    const { prefix } = this.#database.dialect;
    // `by` is compared here: the column is text, and PostgreSQL cannot parse every JSON text that JavaScript writes.
    const rows = await this.#database.rows<{ id: string; body: string }>(
      `SELECT sessions.id, body FROM ${prefix}checkpoints JOIN ${prefix}sessions ON key = session_key
       WHERE session_key > ? AND session_key <= ? AND body LIKE '%"by":%' AND sessions.id IS NOT NULL`,
      [after, after + KEYS_AT_ONCE],
    );
    return rows.filter(({ body }) => (JSON.parse(body) as Checkpoint).by === userId).map(({ id }) => id);
  }

  async heirs(sessionIds: readonly string[]): Promise<readonly (readonly [string, string])[]> {
    const { prefix } = this.#database.dialect;
    const some = `(${sessionIds.map(() => "?").join(", ")})`;
    const rows = await this.#database.rows<{ root: string; id: string }>(
      `WITH RECURSIVE family (root, key, id) AS (
         SELECT id, key, id FROM ${prefix}sessions WHERE id IN ${some}
         UNION SELECT root, sessions.key, sessions.id FROM ${prefix}sessions JOIN family ON origin_key = family.key
       ) SELECT root, id FROM family WHERE id <> root
       UNION SELECT parent_id, id FROM ${prefix}session_parents JOIN ${prefix}sessions ON key = session_key
         WHERE parent_id IN ${some} AND id IS NOT NULL`,
      [...sessionIds, ...sessionIds],
    );
    return rows.map(({ root, id }) => [root, id] as const);
  }

  async leftovers(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const { what, sql } of this.#parts.leftovers()) {
      const [row] = await this.#database.rows<{ count: number | string }>(sql);
      if (Number(row?.count) > 0) found.push(`The store has ${Number(row?.count)} ${what} that nothing refers to.`);
    }
    return found;
  }

  async readMarks(keys?: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const wanted = keys === undefined ? "" : `WHERE key IN (${keys.map(() => "?").join(", ")})`;
    const sql = `SELECT key, value FROM ${this.#marks} ${wanted}`;
    const rows = keys?.length === 0 ? [] : await this.#database.rows<{ key: string; value: string }>(sql, keys);
    return new Map(rows.map(({ key, value }) => [key, value]));
  }

  async writeMarks(marks: ReadonlyMap<string, string | null>): Promise<void> {
    const table = this.#marks;
    const kept = [...marks].filter(([, value]) => value !== null);
    const any = [...marks].map(() => "?").join(", ");
    await this.#database.transact(function* (transaction) {
      yield* waitFor(transaction.change(`DELETE FROM ${table} WHERE key IN (${any})`, [...marks.keys()]));
      const insert = `INSERT INTO ${table} (key, value) VALUES ${kept.map(() => "(?, ?)").join(", ")}`;
      if (kept.length > 0) yield* waitFor(transaction.change(insert, kept.flat()));
    });
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    return this.#parts.removal.remove(sessionIds);
  }

  /**
   * Gives the session a new key. Other processes that cached it under the old key cannot append to it any more, and forks
   * keep the entries that they inherited from the old key.
   */
  *#replace(port: SqlPort<Session>, sessionId: string, version: number, entries: readonly Entry[]): Coroutine<boolean> {
    const { removal } = this.#parts;
    const session = yield* waitFor(port.load(sessionId));
    if (session === null) throw new SessionNotFoundError(sessionId);
    if (session.head.version !== version) return false;
    const { empty, plan } = planRewrite(session.head, entries);
    const { rows, located } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    yield* removal.releaseIds(port.runner, [sessionId]);
    const made = yield* waitFor(port.make({ located, rows, origin: [] }, {}));
    yield* removal.moveRows(port.runner, session.key, made.key);
    return true;
  }
}
