import type { SqlValue as SharedValue } from "../sql/sql-database.ts";

/** A value that can be bound to a statement. */
export type SqlValue = SharedValue | boolean;

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** The rows that a statement returns, and how many it changed. */
export interface Answer extends ReadonlyArray<Row> {
  readonly count: number;
}

/** Runs statements on any connection of a pool, or on the connection of a transaction. */
export interface Statements {
  /** Runs one statement; values are bound to `$1`, `$2` and so on. */
  query(sql: string, values: readonly SqlValue[]): Promise<Answer>;
}

/** The callbacks of a listener. */
export interface ListenHandlers {
  notified(payload: string): void;
  /** Called when listening starts, or starts again after a lost connection: notifications before may have been missed. */
  listening(): void;
}

/** An open LISTEN on a channel. */
export interface Listener {
  close(): Promise<void>;
}

/** A connection to PostgreSQL, over any of the supported clients. */
export interface PostgresConnection extends Statements {
  /** The address of the database for error messages, without user and password. */
  readonly address: string;
  /** Runs `work` in a transaction at READ COMMITTED. Rolls back if the work throws. */
  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T>;
  /** Listens on a channel, over a separate connection. */
  listen(channel: string, handlers: ListenHandlers): Promise<Listener>;
  /** Closes the connections that the store has opened, but not a client of the caller. */
  close(): Promise<void>;
}
