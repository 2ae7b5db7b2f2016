import type { Asking, Reply } from "../rows/asking.ts";

/** What is bound to a statement. */
export type SqlValue = string | number | bigint | null;

/** Where statements run: anywhere on a database, or in one transaction of it. */
export interface SqlRunner {
  /** The rows of a query, which changes nothing. Each `?` takes the next value. */
  rows<Row>(sql: string, values?: readonly SqlValue[]): Reply<readonly Row[]>;
  /** Runs a statement once, for how many rows it changed. */
  change(sql: string, values?: readonly SqlValue[]): Reply<number>;
}

/** What databases say in different words, as SQL. */
export interface SqlDialect {
  /** Before the name of every table. */
  readonly prefix: string;
  /** After a query whose rows nobody may change until the transaction ends. */
  readonly forUpdate: string;
  /** After a key that is one of a list, which is bound as JSON. */
  readonly inKeys: string;
  /** A query that waits for others that hold the name bound to it; null where a transaction has the database to itself. */
  readonly lockName: string | null;
  /** Whether `runs` has a bit, as the indexes say it. */
  hasRuns(bit: number): string;
  /** A field of the JSON that a column holds, as a plain value. */
  text(column: string, field: string): string;
}

/** A database, as what SQL stores have in common sees it. */
export interface SqlDatabase extends SqlRunner {
  readonly dialect: SqlDialect;
  /** Runs steps in a transaction that what they throw undoes. They may be run several times. */
  enclose<T>(steps: (inside: SqlRunner) => Asking<T>): Reply<T>;
}
