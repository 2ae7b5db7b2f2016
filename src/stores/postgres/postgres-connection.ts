import type { SqlValue as SharedValue } from "../sql/sql-database.ts";

/** What is bound to a statement. */
export type SqlValue = SharedValue | boolean;

/** A row as a client hands it out: by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** What a statement answers: its rows, and how many it has changed. */
export interface Answer extends ReadonlyArray<Row> {
  readonly count: number;
}

/** Where statements run: on any connection of a pool, or on the one of a transaction. */
export interface Statements {
  /** Runs one statement; values are bound to `$1`, `$2` and so on. */
  query(sql: string, values: readonly SqlValue[]): Promise<Answer>;
}

/** What someone who listens is told. */
export interface ListenHandlers {
  notified(payload: string): void;
  /** Listening works, perhaps again: what was sent before may have been missed. */
  listening(): void;
}

/** An open ear on a channel. */
export interface Ear {
  close(): Promise<void>;
}

/** A client of PostgreSQL, whichever it is. */
export interface PostgresConnection extends Statements {
  /** Where the database is, for messages: never with a user or a password. */
  readonly address: string;
  /** Runs `work` in a transaction at READ COMMITTED; what it throws undoes it. */
  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T>;
  /** Hears what is sent to a channel, on a connection of its own. */
  listen(channel: string, handlers: ListenHandlers): Promise<Ear>;
  /** Closes what the store itself has opened, and nothing of the caller's. */
  close(): Promise<void>;
}
