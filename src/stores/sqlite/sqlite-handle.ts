import { type Asking, runNow } from "../rows/asking.ts";
import type { SqlDatabase, SqlDialect, SqlRunner, SqlValue } from "../sql/sql-database.ts";
import { sqliteFailure } from "./sqlite-failure.ts";

/** An open database as better-sqlite3, libsql and `node:sqlite` all offer it. */
export interface SqliteDatabase {
  prepare(sql: string): {
    run(...values: SqlValue[]): { readonly changes: number | bigint };
    get(...values: SqlValue[]): unknown;
    all(...values: SqlValue[]): unknown[];
  };
  exec(sql: string): unknown;
  close(): unknown;
}

/** A statement that is prepared when it is first run, and run often. */
export interface SqliteStatement {
  /** Runs it and returns how many rows it changed. */
  run(values: readonly SqlValue[]): number;
  get<Row>(values: readonly SqlValue[]): Row | undefined;
  all<Row>(values: readonly SqlValue[]): Row[];
}

const pathOf = (path: readonly string[]): string => `'$.${path.join(".")}'`;

const DIALECT: SqlDialect = {
  prefix: "",
  forUpdate: "",
  byBytes: "",
  inKeys: "IN (SELECT value FROM json_each(?))",
  lockName: null,
  // As the indexes say it, since SQLite compares their conditions word by word.
  hasRuns: (bit) => `runs & ${bit}`,
  json: (column, ...path) => `${column} -> ${pathOf(path)}`,
  text: (column, ...path) => `${column} ->> ${pathOf(path)}`,
  arrayLength: (json) => `json_array_length(${json})`,
  jsonOf: (text) => text,
};

/**
 * One connection, behind which the drivers look the same: statements are prepared once, every failure is a
 * `SessionError`, and no transaction stays open.
 */
export class SqliteHandle implements SqlDatabase {
  readonly dialect: SqlDialect = DIALECT;
  /** The file, for messages. */
  readonly place: string;
  readonly #connection: SqliteDatabase;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(connection: SqliteDatabase, place: string) {
    this.#connection = connection;
    this.place = place;
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = new CheckedStatement(() => this.#connection.prepare(sql), this.place);
    this.#statements.set(sql, statement);
    return statement;
  }

  rows<Row>(sql: string, values: readonly SqlValue[] = []): Row[] {
    return this.prepare(sql).all<Row>(values);
  }

  change(sql: string, values: readonly SqlValue[] = []): number {
    return this.prepare(sql).run(values);
  }

  exec(sql: string): void {
    this.#attempt(() => this.#connection.exec(sql));
  }

  enclose<T>(steps: (inside: SqlRunner) => Asking<T>): T {
    return this.transaction(() => runNow(steps(this)));
  }

  /** Runs `work` as one transaction that holds the write lock from its beginning; what it throws undoes it. */
  transaction<T>(work: () => T): T {
    return this.#enclose("BEGIN IMMEDIATE", work);
  }

  /** Runs `work` on one state of the database, whatever others write meanwhile. */
  snapshot<T>(work: () => T): T {
    return this.#enclose("BEGIN", work);
  }

  close(): void {
    this.#statements.clear();
    this.#attempt(() => this.#connection.close());
  }

  #enclose<T>(begin: string, work: () => T): T {
    this.prepare(begin).run([]);
    try {
      const result = work();
      this.prepare("COMMIT").run([]);
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #rollBack(): void {
    try {
      this.#connection.exec("ROLLBACK");
    } catch {
      // A full disk, among others, makes SQLite roll back by itself; then there is nothing left to undo.
    }
  }

  #attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw sqliteFailure(error, this.place);
    }
  }
}

type DriverStatement = ReturnType<SqliteDatabase["prepare"]>;

class CheckedStatement implements SqliteStatement {
  readonly #prepare: () => DriverStatement;
  readonly #place: string;
  #single: DriverStatement | undefined;
  /** One of its own: after `all`, libsql would answer `get` once more for the values that `all` was given. */
  #list: DriverStatement | undefined;

  constructor(prepare: () => DriverStatement, place: string) {
    this.#prepare = prepare;
    this.#place = place;
  }

  run(values: readonly SqlValue[]): number {
    checkValues(values);
    try {
      this.#single ??= this.#prepare();
      return Number(this.#single.run(...values).changes);
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }

  get<Row>(values: readonly SqlValue[]): Row | undefined {
    checkValues(values);
    try {
      this.#single ??= this.#prepare();
      return (this.#single.get(...values) ?? undefined) as Row | undefined;
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }

  all<Row>(values: readonly SqlValue[]): Row[] {
    checkValues(values);
    try {
      this.#list ??= this.#prepare();
      return this.#list.all(...values) as Row[];
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }
}

/** Anything else, a boolean even, would abort the process in one of the drivers. */
function checkValues(values: readonly unknown[]): void {
  for (const value of values) {
    const type = typeof value;
    if (type === "string" || type === "number" || type === "bigint" || value === null) continue;
    throw new TypeError(`A ${type} cannot be bound to a statement.`);
  }
}
