import { type Asking, runNow } from "../rows/asking.ts";
import type { SqlDatabase, SqlDialect, SqlRunner, SqlValue } from "../sql/sql-database.ts";
import { SessionError } from "../../session/errors.ts";
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

type DriverStatement = ReturnType<SqliteDatabase["prepare"]>;

/** What stands for the file of a database that ends with its connection. */
export const MEMORY = ":memory:";

const DIALECT: SqlDialect = {
  prefix: "",
  forUpdate: "",
  inKeys: "IN (SELECT value FROM json_each(?))",
  lockName: null,
  // As the indexes say it, since SQLite compares their conditions word by word.
  hasRuns: (bit) => `runs & ${bit}`,
  text: (column, field) => `${column} ->> '$.${field}'`,
};

/**
 * One connection, behind which the drivers look the same: statements are prepared once, every failure is a
 * `SessionError`, and no transaction stays open.
 */
export class SqliteHandle implements SqlDatabase {
  readonly dialect: SqlDialect = DIALECT;
  /** The file, for messages. */
  readonly address: string;
  /** Whether it closes the connection, or the caller does. */
  readonly ownsConnection: boolean;
  readonly #connection: SqliteDatabase;
  readonly #statements = new Map<string, DriverStatement>();
  /** Apart from the others: after `all`, libsql would answer `get` once more for the values that `all` was given. */
  readonly #lists = new Map<string, DriverStatement>();

  constructor(connection: SqliteDatabase, address: string, ownsConnection: boolean) {
    this.#connection = connection;
    this.ownsConnection = ownsConnection;
    this.address = address;
  }

  rows<Row>(sql: string, values: readonly SqlValue[] = []): Row[] {
    checkValues(values);
    const statement = this.#attempt(() => this.#prepared(this.#lists, sql));
    return this.#run(() => statement.all(...values)) as Row[];
  }

  /** The first row of a query, or of what a statement returns. */
  row<Row>(sql: string, values: readonly SqlValue[] = []): Row | undefined {
    checkValues(values);
    const statement = this.#attempt(() => this.#prepared(this.#statements, sql));
    return (this.#run(() => statement.get(...values)) ?? undefined) as Row | undefined;
  }

  change(sql: string, values: readonly SqlValue[] = []): number {
    checkValues(values);
    const statement = this.#attempt(() => this.#prepared(this.#statements, sql));
    return Number(this.#run(() => statement.run(...values).changes));
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

  /** Lets go of all statements, and of the connection unless it is the caller's. */
  close(): void {
    this.#statements.clear();
    this.#lists.clear();
    if (this.ownsConnection) this.#attempt(() => this.#connection.close());
  }

  #prepared(statements: Map<string, DriverStatement>, sql: string): DriverStatement {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  #enclose<T>(begin: string, work: () => T): T {
    this.exec(begin);
    try {
      const result = work();
      this.exec("COMMIT");
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

  /** Runs a prepared statement. */
  #run<T>(step: () => T): T {
    try {
      return step();
    } catch (error) {
      const failure = sqliteFailure(error, this.address);
      if (failure instanceof SessionError && failure.code === "SESSION_BUSY") this.#endStatement(step);
      throw failure;
    }
  }

  /**
   * Ends a statement that found the database locked. libsql leaves it in the middle, and as long as one is there SQLite
   * commits nothing that others write on the connection, though it says that they have. Where nothing may be written, the
   * statement fails, which is an end.
   */
  #endStatement(step: () => unknown): void {
    this.#connection.exec("PRAGMA query_only = ON");
    try {
      step();
    } catch {
      // This failure is the end.
    } finally {
      this.#connection.exec("PRAGMA query_only = OFF");
    }
  }

  #attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw sqliteFailure(error, this.address);
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
