import { sqliteFailure } from "./sqlite-failure.ts";

/** What is bound to a statement. Anything else, a boolean even, would abort the process in one of the drivers. */
export type SqlValue = string | number | bigint | null;

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

/** An open database whose statements take their values as one list, which costs less where the driver does. */
export interface SqliteConnection {
  prepare(sql: string): {
    run(values: readonly SqlValue[]): { readonly changes: number | bigint };
    get(values: readonly SqlValue[]): unknown;
    all(values: readonly SqlValue[]): unknown[];
  };
  exec(sql: string): unknown;
  close(): unknown;
}

/** A statement that is prepared once and run often. */
export interface SqliteStatement {
  /** Runs it and returns how many rows it changed. */
  run(values: readonly SqlValue[]): number;
  get<Row>(values: readonly SqlValue[]): Row | undefined;
  all<Row>(values: readonly SqlValue[]): Row[];
}

/** A database as a connection. */
export function connectionOf(database: SqliteDatabase): SqliteConnection {
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run: (values) => statement.run(...values),
        get: (values) => statement.get(...values),
        all: (values) => statement.all(...values),
      };
    },
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
  };
}

/**
 * One connection, behind which the drivers look the same: statements are prepared once, every failure is a
 * `SessionError`, and no transaction stays open.
 */
export class SqliteHandle {
  /** The file, for messages. */
  readonly place: string;
  readonly #connection: SqliteConnection;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(connection: SqliteConnection, place: string) {
    this.#connection = connection;
    this.place = place;
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#attempt(() => new CheckedStatement(this.#connection.prepare(sql), this.place));
    this.#statements.set(sql, statement);
    return statement;
  }

  exec(sql: string): void {
    this.#attempt(() => this.#connection.exec(sql));
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

class CheckedStatement implements SqliteStatement {
  readonly #statement: ReturnType<SqliteConnection["prepare"]>;
  readonly #place: string;

  constructor(statement: ReturnType<SqliteConnection["prepare"]>, place: string) {
    this.#statement = statement;
    this.#place = place;
  }

  run(values: readonly SqlValue[]): number {
    checkValues(values);
    try {
      return Number(this.#statement.run(values).changes);
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }

  get<Row>(values: readonly SqlValue[]): Row | undefined {
    checkValues(values);
    try {
      return (this.#statement.get(values) ?? undefined) as Row | undefined;
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }

  all<Row>(values: readonly SqlValue[]): Row[] {
    checkValues(values);
    try {
      return this.#statement.all(values) as Row[];
    } catch (error) {
      throw sqliteFailure(error, this.#place);
    }
  }
}

function checkValues(values: readonly unknown[]): void {
  for (const value of values) {
    const type = typeof value;
    if (type === "string" || type === "number" || type === "bigint" || value === null) continue;
    throw new TypeError(`A ${type} cannot be bound to a statement.`);
  }
}
