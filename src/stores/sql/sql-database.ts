import type { MaybePromise } from "../../session/store-driver.ts";
import type { Coroutine } from "../rows/coroutine.ts";

/** A value that can be bound to a statement. */
export type SqlValue = string | number | bigint | Uint8Array | null;

/** Runs statements, either each by itself or all in one transaction. */
export interface SqlRunner {
  /** The rows of a read-only query, which may be retried. Each `?` is bound to the next value. */
  rows<Row>(sql: string, values?: readonly SqlValue[]): MaybePromise<readonly Row[]>;
  /** Runs a statement exactly once, never retried, and returns how many rows it changed. */
  change(sql: string, values?: readonly SqlValue[]): MaybePromise<number>;
}

/** The SQL in which databases differ. */
export interface SqlDialect {
  /** Prefix of every table name, such as a schema with a dot. */
  readonly prefix: string;
  /** Clause that locks the rows of a query until the transaction ends. */
  readonly forUpdate: string;
  /** Condition after a key column: the key is in a list that is bound as JSON. */
  readonly inKeys: string;
  /** Query that locks the name bound to it until the transaction ends; null if write transactions never overlap. */
  readonly lockName: string | null;
  /** Condition: `runs` has a bit. Written exactly as in the indexes on `runs`, so that the planner uses them. */
  hasRuns(bit: number): string;
  /** Expression for bytes that are bound as `bindBytes` returns them. */
  readonly bytesToData: string;
  bindBytes(bytes: Buffer): SqlValue;
  /** Expression that selects bytes in the form that `readBytes` decodes. */
  dataToBytes(data: string): string;
  readBytes(value: unknown): Buffer;
  /** The most bytes to read at a time. */
  readonly partBytes: number;
  /** Expression for a field of a JSON column as text. */
  text(column: string, field: string): string;
}

/** A database, as the code that all SQL stores share sees it. */
export interface SqlDatabase extends SqlRunner {
  readonly dialect: SqlDialect;
  /** Runs work in a transaction, which rolls back if the work throws. The work may run several times. */
  transact<T>(work: (transaction: SqlRunner) => Coroutine<T>): MaybePromise<T>;
}
