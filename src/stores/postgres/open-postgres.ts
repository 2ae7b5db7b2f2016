import type { Options, Sql } from "postgres";
import { SessionError } from "../../session/errors.ts";
import { CALL_TIMEOUT, hasState, isConnectionLost } from "./postgres-failure.ts";
import type { PostgresStoreOptions } from "./postgres-store.ts";
import type {
  Answer,
  Listener,
  ListenHandlers,
  PostgresConnection,
  SqlValue,
  Statements,
} from "./postgres-connection.ts";

const CONNECT_TIMEOUT_SECONDS = 10;
const CLOSE_TIMEOUT_SECONDS = 1;
/** How long calls may still run on a client that was replaced. */
const REPLACED_TIMEOUT_MS = 30_000;
const RECONNECT_SECONDS_MAX = 1;
/** How much longer than the statement timeout of the server a client waits, since a broken network reports no error. */
const CALL_GRACE_MS = 5000;

/** A client of the `postgres` package, as far as its type shows; the rest is checked at runtime. */
export interface PostgresClient {
  unsafe(sql: string): PromiseLike<readonly unknown[]>;
  begin: unknown;
  readonly options: { readonly host: string[]; readonly port: number[]; readonly database: string };
}

const STATEMENT_TIMEOUT_MS = 30_000;
const CONNECTIONS = 10;

/** Connects with the `postgres` package. @throws {SessionError} `DRIVER_MISSING` when it is not installed. */
export async function openPostgres(url: string, options: PostgresStoreOptions): Promise<PostgresConnection> {
  const { prepare = true, connectionsMax = CONNECTIONS, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options;
  const postgres = await loadPostgres();
  const make = (): Sql =>
    postgres(url, {
      prepare,
      max: connectionsMax,
      connect_timeout: CONNECT_TIMEOUT_SECONDS,
      // Skein binds no arrays, so their types need not be fetched for every new connection.
      fetch_types: false,
      backoff: reconnectSeconds,
      onnotice: () => {},
      connection: {
        application_name: "skein",
        // A proxy that pools transactions may refuse startup parameters, so send this one only if it is set.
        ...(statementTimeoutMs > 0 && { statement_timeout: statementTimeoutMs }),
      },
    });
  const callMs = statementTimeoutMs > 0 ? statementTimeoutMs + CALL_GRACE_MS : 0;
  return new ClientConnection(make(), postgres, { prepare, make, callMs });
}

/** Uses the caller's client of the `postgres` package, which the caller closes. */
export async function usePostgres(client: PostgresClient, prepare: boolean): Promise<PostgresConnection> {
  return new ClientConnection(client as unknown as Sql, await loadPostgres(), { prepare, make: null, callMs: 0 });
}

/** Whether a value is a client of the `postgres` package. */
export function isPostgresClient(value: unknown): value is PostgresClient {
  if (typeof value !== "function") return false;
  const { unsafe, begin } = value as unknown as Partial<Sql>;
  return typeof unsafe === "function" && typeof begin === "function";
}

/** Whether a client renames columns or transforms values, which would break the rows that Skein reads. */
export function hasTransform(client: PostgresClient): boolean {
  const { transform } = (client as unknown as Sql).options as unknown as {
    transform?: Record<string, { from?: unknown } | undefined>;
  };
  return ["column", "value", "row"].some((part) => transform?.[part]?.from !== undefined);
}

type Postgres = typeof import("postgres");

async function loadPostgres(): Promise<Postgres> {
  try {
    return (await import("postgres")).default as unknown as Postgres;
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "The PostgreSQL store needs a client: install the package postgres, version 3.4 or later, or pass a pool of the package pg.",
      { cause },
    );
  }
}

/** A client, with the number of calls that run on it. */
interface ClientInUse {
  readonly client: Sql;
  running: number;
  /** Timer that ends a replaced client even if calls still run on it. */
  expiry: NodeJS.Timeout | null;
}

/** A connection over a client of the `postgres` package. Replaces the client after a fault from which it cannot recover. */
class ClientConnection implements PostgresConnection {
  readonly address: string;
  readonly #postgres: Postgres;
  readonly #prepare: boolean;
  /** Creates another client; null if the client belongs to the caller. */
  readonly #make: (() => Sql) | null;
  /** How long a statement may take; 0 for no limit. */
  readonly #callMs: number;
  #current: ClientInUse;
  readonly #replaced = new Set<ClientInUse>();

  constructor(
    client: Sql,
    postgres: Postgres,
    { prepare, make, callMs }: { prepare: boolean; make: (() => Sql) | null; callMs: number },
  ) {
    const { host, port, database } = client.options;
    this.address = `${host[0]}:${port[0]}/${database}`;
    this.#current = { client, running: 0, expiry: null };
    this.#postgres = postgres;
    this.#prepare = prepare;
    this.#make = make;
    this.#callMs = callMs;
  }

  query(sql: string, values: readonly SqlValue[]): Promise<Answer> {
    return this.#attempt(({ client }) => this.#run(client, sql, values));
  }

  async transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T> {
    const result = await this.#attempt((used) =>
      used.client.begin("isolation level read committed", async (sql) => {
        try {
          return await work({ query: (text, values) => this.#run(sql as unknown as Sql, text, values) });
        } catch (error) {
          // If this threw, the client would send ROLLBACK on the lost connection, which crashes the process. While this
          // never returns, the client waits until the connection closes, and then rejects.
          if (isConnectionLost(error)) {
            if (hasState(error, CALL_TIMEOUT)) this.#replace(used, 0);
            await new Promise<never>(() => {});
          }
          throw error;
        }
      }),
    );
    return result as T;
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    // After a long outage, a client never listens again, so each listener gets a client that can be discarded.
    const options = { ...this.#current.client.options, max: 1, shared: { retries: 0, typeArrayMap: {} } };
    const client = this.#postgres(options as unknown as Options<never>);
    const close = (): Promise<void> => client.end({ timeout: 0 });
    try {
      await client.listen(channel, handlers.notified, handlers.listening);
    } catch (error) {
      await close();
      throw error;
    }
    return { close };
  }

  async close(): Promise<void> {
    if (this.#make === null) return;
    const ends = [...this.#replaced].map((used) => this.#discard(used));
    await Promise.all([this.#current.client.end({ timeout: CLOSE_TIMEOUT_SECONDS }), ...ends]);
  }

  async #attempt<T>(work: (used: ClientInUse) => Promise<T>): Promise<T> {
    const used = this.#current;
    used.running += 1;
    try {
      return await work(used);
    } catch (error) {
      if (isConnectionLost(error)) this.#replace(used, hasState(error, CALL_TIMEOUT) ? 0 : REPLACED_TIMEOUT_MS);
      throw error;
    } finally {
      used.running -= 1;
      if (used.running === 0 && this.#replaced.has(used)) void this.#discard(used);
    }
  }

  async #run(client: Sql, sql: string, values: readonly SqlValue[]): Promise<Answer> {
    const answer = run(client, sql, values, this.#prepare);
    if (this.#callMs === 0) return answer;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const fail = (): void =>
        reject(Object.assign(new Error(`It took longer than ${this.#callMs} ms.`), { code: CALL_TIMEOUT }));
      timer = setTimeout(fail, this.#callMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Replaces a client whose connection broke: with unsent data left, the client cannot use that connection again. */
  #replace(broken: ClientInUse, graceMs: number): void {
    if (this.#make === null || this.#current !== broken) return;
    this.#current = { client: this.#make(), running: 0, expiry: null };
    broken.expiry = setTimeout(() => void this.#discard(broken), graceMs);
    this.#replaced.add(broken);
  }

  /** Ends a client without waiting for its connections, since a broken one never reports that it has closed. */
  async #discard(used: ClientInUse): Promise<void> {
    clearTimeout(used.expiry ?? undefined);
    this.#replaced.delete(used);
    await used.client.end({ timeout: 0 }).catch(() => {});
  }
}

function run(client: Sql, sql: string, values: readonly SqlValue[], prepare: boolean): Promise<Answer> {
  return client.unsafe(sql, values as never[], { prepare }) as unknown as Promise<Answer>;
}

function reconnectSeconds(attempts: number): number {
  return Math.min(RECONNECT_SECONDS_MAX, 0.05 * 2 ** attempts);
}
