import { type Coroutine, runSync } from "../rows/coroutine.ts";
import type { SqlDatabase, SqlDialect, SqlRunner, SqlValue } from "../sql/sql-database.ts";
import { SessionError } from "../../session/errors.ts";
import { sqliteFailure } from "./sqlite-failure.ts";

/** The interface that open databases of better-sqlite3, libsql and `node:sqlite` have in common. */
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

/** SQLite's path for a database in memory, which ends with its connection. */
export const MEMORY = ":memory:";

const DIALECT: SqlDialect = {
  prefix: "",
  forUpdate: "",
  inKeys: "IN (SELECT value FROM json_each(?))",
  lockName: null,
  // Not as text: the texts of 100 MB would take up to 80 MB before they are collected.
  bytesToData: "?",
  bindBytes: (bytes) => bytes,
  dataToBytes: (data) => data,
  readBytes: (value) => bufferOf(value as Uint8Array | ArrayBuffer),
  partBytes: 1024 * 1024,
  // Must be written exactly as in the partial indexes, or SQLite does not use them.
  hasRuns: (bit) => `runs & ${bit}`,
  text: (column, field) => `${column} ->> '$.${field}'`,
};

/**
 * One connection, with the same behaviour for every driver: it caches prepared statements, converts every failure to a
 * `SessionError` and leaves no transaction open.
 */
export class SqliteHandle implements SqlDatabase {
  readonly dialect: SqlDialect = DIALECT;
  /** The path of the file, for error messages. */
  readonly address: string;
  /** True if `close` closes the connection; false if the caller does. */
  readonly ownsConnection: boolean;
  readonly #connection: SqliteDatabase;
  readonly #statements = new Map<string, DriverStatement>();
  /** Separate statements for `all`: after `all`, libsql would answer `get` with the values that `all` was given. */
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

  /** The first row that a query, or a statement with RETURNING, returns. */
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

  transact<T>(work: (transaction: SqlRunner) => Coroutine<T>): T {
    return this.transaction(() => runSync(work(this)));
  }

  /** Runs `work` in a transaction that takes the write lock at its start. Rolls back if the work throws. */
  transaction<T>(work: () => T): T {
    return this.#runBetween("BEGIN IMMEDIATE", work);
  }

  /** Runs `work` on a snapshot of the database, isolated from concurrent writes. */
  snapshot<T>(work: () => T): T {
    return this.#runBetween("BEGIN", work);
  }

  /** Drops all statements, and closes the connection if this handle owns it. */
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

  #runBetween<T>(begin: string, work: () => T): T {
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
      // After some failures, such as a full disk, SQLite has rolled back already.
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
   * Ends a statement that found the database locked. libsql leaves such a statement unfinished, and as long as there is one, SQLite commits
   * no later write of the connection, although it reports success. With `query_only` set, repeating the statement makes it fail, which ends
   * it.
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

/** Bytes as a driver returns them, without a copy: libsql's `all` returns an ArrayBuffer. */
function bufferOf(value: Uint8Array | ArrayBuffer): Buffer {
  return ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : Buffer.from(value);
}

/** Refuses values of other types: even a boolean would abort the process in one of the drivers. */
function checkValues(values: readonly unknown[]): void {
  for (const value of values) {
    const type = typeof value;
    if (type === "string" || type === "number" || type === "bigint" || value === null) continue;
    // As the only value, libsql takes it for an object of named values, and aborts.
    if (value instanceof Uint8Array && values.length > 1) continue;
    throw new TypeError(`A ${type} cannot be bound to a statement.`);
  }
}
