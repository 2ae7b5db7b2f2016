import { PART_BYTES } from "../sql/blob-rows.ts";
import { setTimeout as wait } from "node:timers/promises";
import { type Coroutine, runAsync } from "../rows/coroutine.ts";
import type { SqlDatabase, SqlDialect, SqlRunner } from "../sql/sql-database.ts";
import { storeClosed } from "../complete/store-closed.ts";
import { isRetryable, isWorthRetry, postgresFailure } from "./postgres-failure.ts";
import type { Listener, ListenHandlers, PostgresConnection, Row, SqlValue, Statements } from "./postgres-connection.ts";

const TRANSACTION_ATTEMPTS_MAX = 5;
/** The backoff before each retry while the server cannot be reached, for instance during a restart. */
const RETRY_DELAYS_MS: readonly number[] = [50, 100, 200, 400, 800, 1500];

/** How long `close` waits for running calls. */
const CLOSE_WAIT_MS = 5000;

/** SQL for the time of the database, in milliseconds since 1970. */
export const DATABASE_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * One database, with the same behaviour for every client: it converts every failure to a `SessionError`, numbers the
 * parameters of statements, and retries reads after a lost connection.
 */
export class PostgresHandle implements SqlDatabase, Transaction {
  readonly dialect: SqlDialect;
  readonly address: string;
  /** The name of the schema, quoted for SQL. */
  readonly schema: string;
  /** The channel on which this store sends notifications. */
  readonly channel: string;
  readonly #connection: PostgresConnection;
  #running = 0;
  /** Called after `close` when the last running call has ended. */
  #onIdle: (() => void) | null = null;
  #closed = false;

  constructor(connection: PostgresConnection, schema: string) {
    this.#connection = connection;
    this.address = connection.address;
    this.schema = `"${schema}"`;
    this.channel = `${schema}_entries`;
    this.dialect = dialectOf(this.schema);
  }

  /** Runs a statement that may change data: never retried. */
  write<R = Row>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    return this.#attempt(() => this.#connection.query(numbered(sql), values)) as Promise<readonly R[]>;
  }

  /** Like `write`, but returns only the number of changed rows, which is cheaper than returning rows. */
  change(sql: string, values: readonly SqlValue[] = []): Promise<number> {
    return this.#attempt(async () => (await this.#connection.query(numbered(sql), values)).count);
  }

  /** Runs a statement that is safe to repeat, and retries it if the connection is lost. */
  async rows<R = Row>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.write<R>(sql, values);
      } catch (error) {
        const waitMs = this.retryDelayMs(error, attempt);
        if (waitMs === null) throw error;
        await wait(waitMs);
      }
    }
  }

  /** How long to wait before a retry after this error; null if it must not be retried. `attempt` counts earlier failures. */
  retryDelayMs(error: unknown, attempt: number): number | null {
    return this.#closed || !isWorthRetry(error) ? null : (RETRY_DELAYS_MS[attempt] ?? null);
  }

  transact<T>(work: (transaction: SqlRunner) => Coroutine<T>): Promise<T> {
    return this.transaction((transaction) => runAsync(work(transaction)));
  }

  /** Runs `work` in a transaction, and repeats it if the database rolled it back because of a conflict with another one. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(() => this.#connection.transaction((statements) => work(transactionOn(statements))));
      } catch (error) {
        if (!isRetryable(error) || attempt === TRANSACTION_ATTEMPTS_MAX) throw error;
      }
    }
  }

  listen(handlers: ListenHandlers): Promise<Listener> {
    return this.#attempt(() => this.#connection.listen(this.channel, handlers));
  }

  /** Refuses new calls, waits for running ones, and closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    const idle = this.#running === 0 ? null : new Promise<void>((resolve) => (this.#onIdle = resolve));
    const timer = new AbortController();
    await Promise.race([idle, wait(CLOSE_WAIT_MS, null, { signal: timer.signal }).catch(() => {})]);
    timer.abort();
    await this.#connection.close();
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw storeClosed();
    this.#running += 1;
    try {
      return await work();
    } catch (error) {
      throw postgresFailure(error, this.address);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#onIdle?.();
    }
  }
}

/** Runs statements in one transaction, or each by itself. */
export interface Transaction extends SqlRunner {
  rows<R = Row>(sql: string, values?: readonly SqlValue[]): Promise<readonly R[]>;
  change(sql: string, values?: readonly SqlValue[]): Promise<number>;
}

function transactionOn({ query }: Statements): Transaction {
  return {
    rows: <R>(sql: string, values: readonly SqlValue[] = []) =>
      query(numbered(sql), values) as Promise<unknown> as Promise<readonly R[]>,
    change: async (sql, values = []) => (await query(numbered(sql), values)).count,
  };
}

function dialectOf(schema: string): SqlDialect {
  return {
    prefix: `${schema}.`,
    forUpdate: "FOR UPDATE",
    inKeys: "= ANY (translate(?::text, '[]', '{}')::bigint[])",
    // As text: clients differ in how they bind bytes.
    bytesToData: "decode(?::text, 'base64')",
    bindBytes: (bytes) => bytes.toString("base64"),
    dataToBytes: (data) => `encode(${data}, 'base64')`,
    readBytes: (value) => Buffer.from(value as string, "base64"),
    partBytes: PART_BYTES,
    lockName: "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 1))",
    // A list of values instead of a bit test: the planner has statistics for values, but not for bits.
    hasRuns: (bit) => `runs IN (${[1, 2, 3, 4, 5, 6, 7].filter((value) => (value & bit) !== 0).join(", ")})`,
    text: (column, field) => `${column} ->> '${field}'`,
  };
}

/** Replaces each `?` of a statement by `$1`, `$2` and so on; leaves a statement with numbered parameters unchanged. */
function numbered(sql: string): string {
  if (!sql.includes("?")) return sql;
  let count = 0;
  return sql.replaceAll("?", () => `$${++count}`);
}
