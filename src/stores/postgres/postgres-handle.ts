import { setTimeout as wait } from "node:timers/promises";
import { type Coroutine, runAsync } from "../rows/coroutine.ts";
import type { SqlDatabase, SqlDialect, SqlRunner } from "../sql/sql-database.ts";
import { storeClosed } from "../complete/store-closed.ts";
import { CALL_TIMEOUT, hasState, isConnectionLost, isRetryable, postgresFailure } from "./postgres-failure.ts";
import type { Ear, ListenHandlers, PostgresConnection, Row, SqlValue, Statements } from "./postgres-connection.ts";

const TRANSACTION_ATTEMPTS_MAX = 5;
/** How long what may be repeated waits for a server that is away, such as one that is being restarted. */
const WAITS_MS: readonly number[] = [50, 100, 200, 400, 800, 1500];

/** How long closing waits for what is under way. */
const CLOSE_WAIT_MS = 5000;

/** The clock of the database, in milliseconds, as SQL. */
export const DATABASE_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * One database, behind which the clients look the same: every failure is a `SessionError`, names stand in the store's
 * schema, and reads go on over a connection that was lost.
 */
export class PostgresHandle implements SqlDatabase, Transaction {
  readonly dialect: SqlDialect;
  readonly address: string;
  /** The schema's name, quoted, for statements. */
  readonly schema: string;
  /** What listeners hear of this store on. */
  readonly channel: string;
  readonly #connection: PostgresConnection;
  #running = 0;
  /** Told, once the handle is closed, that nothing runs any more. */
  #ended: (() => void) | null = null;
  #closed = false;

  constructor(connection: PostgresConnection, schema: string) {
    this.#connection = connection;
    this.address = connection.address;
    this.schema = `"${schema}"`;
    this.channel = `${schema}_entries`;
    this.dialect = dialectOf(this.schema);
  }

  /** Runs a statement that may change something: once, whatever happens. */
  write<R = Row>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    return this.#attempt(() => this.#connection.query(numbered(sql), values)) as Promise<readonly R[]>;
  }

  /** The same, for how many rows it changed. To hand rows out costs something even where it is one. */
  change(sql: string, values: readonly SqlValue[] = []): Promise<number> {
    return this.#attempt(async () => (await this.#connection.query(numbered(sql), values)).count);
  }

  /** Runs a statement that may be repeated, again if the connection goes away. */
  async rows<R = Row>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    for (let times = 0; ; times++) {
      try {
        return await this.write<R>(sql, values);
      } catch (error) {
        const waitMs = this.retryDelayMs(error, times);
        if (waitMs === null) throw error;
        await wait(waitMs);
      }
    }
  }

  /** How long to wait before something is tried again that failed so, of how many times before; null where it is not. */
  retryDelayMs(error: unknown, times: number): number | null {
    // Who has waited for an answer that never came has waited long enough.
    if (this.#closed || !isConnectionLost(error) || hasState(error, CALL_TIMEOUT)) return null;
    return WAITS_MS[times] ?? null;
  }

  transact<T>(work: (inside: SqlRunner) => Coroutine<T>): Promise<T> {
    return this.transaction((transaction) => runAsync(work(transaction)));
  }

  /** Runs `work` in a transaction, again if the database undid it because of another one. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(() => this.#connection.transaction((statements) => work(transactionOn(statements))));
      } catch (error) {
        if (!isRetryable(error) || attempt === TRANSACTION_ATTEMPTS_MAX) throw error;
      }
    }
  }

  listen(handlers: ListenHandlers): Promise<Ear> {
    return this.#attempt(() => this.#connection.listen(this.channel, handlers));
  }

  /** Refuses what comes from now on, lets what has begun come to its end, and closes. */
  async close(): Promise<void> {
    this.#closed = true;
    const ended = this.#running === 0 ? null : new Promise<void>((resolve) => (this.#ended = resolve));
    const timer = new AbortController();
    await Promise.race([ended, wait(CLOSE_WAIT_MS, null, { signal: timer.signal }).catch(() => {})]);
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
      if (this.#running === 0) this.#ended?.();
    }
  }
}

/** The statements of a transaction, or those of a database each by itself. */
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
    lockName: "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 1))",
    // The values by name, as the database knows how many rows have each, and nothing of their bits.
    hasRuns: (bit) => `runs IN (${[1, 2, 3, 4, 5, 6, 7].filter((value) => (value & bit) !== 0).join(", ")})`,
    text: (column, field) => `${column} ->> '${field}'`,
  };
}

/** A statement whose values PostgreSQL counts, where it does not number them itself. */
function numbered(sql: string): string {
  if (!sql.includes("?")) return sql;
  let count = 0;
  return sql.replaceAll("?", () => `$${++count}`);
}
