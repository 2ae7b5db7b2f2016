import { NOTHING_FOUND } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { Checkpoint, StoreEraser } from "../../session/store.ts";
import { planRewrite } from "../complete/plan-rewrite.ts";
import { type Asking, ask } from "../rows/asking.ts";
import { encodePlan } from "../rows/encode-plan.ts";
import type { RowPort, RowSession } from "../rows/row-port.ts";
import type { Segment } from "../rows/segments.ts";
import type { CheckpointRows } from "./checkpoint-rows.ts";
import type { Removal } from "./removal.ts";
import type { SqlDatabase, SqlRunner } from "./sql-database.ts";
import type { SqlParts } from "./sql-driver.ts";

/** A session as an SQL store loads it. */
export interface SqlSession extends RowSession<Segment> {
  readonly key: number;
}

/** A port whose statements others can add to, in its transaction where it is in one. */
export interface SqlPort<Session extends SqlSession> extends RowPort<Segment, Session> {
  readonly runner: SqlRunner;
  locked<T>(steps: (port: SqlPort<Session>) => Asking<T>): T | Promise<T>;
}

/** Rows that nothing should be left of, as one count. */
export interface Leftover {
  readonly what: string;
  readonly sql: string;
}

type EraserParts<Session extends SqlSession> = Omit<SqlParts<Session>, "removal"> & {
  readonly removal: Removal;
  readonly checkpoints: CheckpointRows;
};

/** How many sessions are looked through for what a user caused before others have their turn. */
const KEYS_AT_ONCE = 50;

/** Replaces logs and keeps marks in the tables of an SQL database. */
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
      return await port.locked((inside) => this.#replace(inside, sessionId, version, entries));
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
    // A fork has what it took over, and so has what was forked from it.
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

  /** The sessions among the next ones after a key with a checkpoint that a user made. */
  async #withCheckpointsBy(userId: string, after: number): Promise<readonly string[]> {
    const { prefix } = this.#database.dialect;
    // Compared here: the column is text, and PostgreSQL cannot read every JSON text that JavaScript writes.
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
    await this.#database.enclose(function* (inside) {
      yield* ask(inside.change(`DELETE FROM ${table} WHERE key IN (${any})`, [...marks.keys()]));
      const insert = `INSERT INTO ${table} (key, value) VALUES ${kept.map(() => "(?, ?)").join(", ")}`;
      if (kept.length > 0) yield* ask(inside.change(insert, kept.flat()));
    });
  }

  remove(sessionIds: readonly string[]): Promise<void> {
    return this.#parts.removal.remove(sessionIds);
  }

  /** Under another key: what others know of the session is of the old one, and what they take of its log they keep. */
  *#replace(inside: SqlPort<Session>, sessionId: string, version: number, entries: readonly Entry[]): Asking<boolean> {
    const { removal } = this.#parts;
    const session = yield* ask(inside.load(sessionId));
    if (session === null) throw new SessionNotFoundError(sessionId);
    if (session.head.version !== version) return false;
    const { empty, plan } = planRewrite(session.head, entries);
    const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    yield* removal.vacate(inside.runner, [sessionId]);
    const made = yield* ask(inside.make({ place, rows, origin: [] }, {}));
    yield* removal.handOver(inside.runner, session.key, made.key);
    return true;
  }
}
