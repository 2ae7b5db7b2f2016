import { createHash } from "node:crypto";
import type {
  Answer,
  Listener,
  ListenHandlers,
  PostgresConnection,
  Row,
  SqlValue,
  Statements,
} from "./postgres-connection.ts";

/** A query object of the `pg` package. */
export interface PgQuery {
  readonly text: string;
  readonly values: unknown[];
  readonly name?: string;
}

/** A result of the `pg` package. */
export interface PgResult {
  readonly rows: unknown[];
  readonly rowCount?: number | null;
}

/** A connected client of the `pg` package. */
export interface PgClient {
  // In method syntax, so that the stricter parameter types of real clients are still assignable.
  query(query: PgQuery): Promise<PgResult>;
  on(event: string, listener: (value: unknown) => void): unknown;
  removeListener(event: string, listener: (value: unknown) => void): unknown;
}

/** A client from a pool, returned to it by `release`. */
export interface PgPoolClient extends PgClient {
  release(error?: boolean): void;
}

/** A pool of the `pg` package. */
export interface PgPool {
  query(query: PgQuery): Promise<PgResult>;
  connect(callback: (error: Error | undefined, client: PgPoolClient | undefined) => void): void;
  readonly totalCount: number;
}

const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

/** Whether a value is a pool of the `pg` package. */
export function isPgPool(value: unknown): value is PgPool {
  const pool = value as Partial<PgPool> | null;
  return hasQuery(value) && typeof pool?.connect === "function" && typeof pool.totalCount === "number";
}

/** Whether a value is a client of the `pg` package. */
export function isPgClient(value: unknown): value is PgClient {
  return hasQuery(value) && !isPgPool(value) && typeof (value as { on?: unknown }).on === "function";
}

/** A client for exclusive use until it is released. */
interface AcquiredClient {
  readonly client: PgClient;
  /** Releases it. A pool discards a client that may be broken. */
  release(broken: boolean): void;
}

/** Uses the caller's pool or single client, which the caller closes. Calls on a single client are queued. */
export class PgConnection implements PostgresConnection {
  readonly address: string;
  readonly #source: PgPool | PgClient;
  readonly #prepare: boolean;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(source: PgPool | PgClient, prepare: boolean) {
    this.address = addressOf(isPgPool(source) ? (source as { options?: unknown }).options : source);
    this.#source = source;
    this.#prepare = prepare;
  }

  query(sql: string, values: readonly SqlValue[]): Promise<Answer> {
    return this.#use((client) => this.#run(client, sql, values));
  }

  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T> {
    return this.#use(async (client, markUsable) => {
      await client.query({ text: BEGIN, values: [] });
      try {
        const result = await work({ query: (sql, values) => this.#run(client, sql, values) });
        await client.query({ text: "COMMIT", values: [] });
        return result;
      } catch (error) {
        await client.query({ text: "ROLLBACK", values: [] }).then(markUsable, () => {});
        throw error;
      }
    });
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    const { client, release } = await this.#acquire();
    const onMessage = (message: unknown): void => {
      const { channel: sentTo, payload = "" } = message as { channel: string; payload?: string };
      if (sentTo === channel) handlers.notified(payload);
    };
    client.on("notification", onMessage);
    try {
      await client.query({ text: `LISTEN "${channel}"`, values: [] });
    } catch (error) {
      client.removeListener("notification", onMessage);
      release(true);
      throw error;
    }
    handlers.listening();
    // A connection that still listens must not be returned to the pool.
    if (!isPgPool(this.#source)) release(false);
    return {
      close: async () => {
        client.removeListener("notification", onMessage);
        if (isPgPool(this.#source)) release(true);
        else await this.query(`UNLISTEN "${channel}"`, []);
      },
    };
  }

  async close(): Promise<void> {}

  /** Runs `work` on a client. If it fails without calling `markUsable`, the client counts as broken. */
  async #use<T>(work: (client: PgClient, markUsable: () => void) => Promise<T>): Promise<T> {
    const { client, release } = await this.#acquire();
    let broken = true;
    const markUsable = (): void => {
      broken = false;
    };
    try {
      const result = await work(client, markUsable);
      markUsable();
      return result;
    } finally {
      release(broken);
    }
  }

  async #run(client: PgClient, text: string, values: readonly SqlValue[]): Promise<Answer> {
    const named = this.#prepare && values.length > 0;
    const { rows, rowCount } = await client.query({ text, values: [...values], ...(named && { name: nameOf(text) }) });
    return Object.assign(rows as Row[], { count: rowCount ?? 0 });
  }

  async #acquire(): Promise<AcquiredClient> {
    if (isPgPool(this.#source)) return acquireFrom(this.#source);
    const before = this.#queue;
    let release = (): void => {};
    this.#queue = new Promise<void>((resolve) => (release = resolve));
    await before;
    return { client: this.#source, release };
  }
}

/** Acquires a client from a pool. Until it is released, an error of its connection fails only the running call. */
function acquireFrom(pool: PgPool): Promise<AcquiredClient> {
  return new Promise((resolve, reject) => {
    // From here on, the pool does not listen for errors of the client, and one may follow in the same tick. So the listener is
    // added in the callback; after awaiting a promise, it would be too late.
    pool.connect((error, client) => {
      if (client === undefined) return reject(error);
      const ignore = (): void => {};
      client.on("error", ignore);
      resolve({
        client,
        release(broken) {
          // Discarding a connection can still emit an error, and an error without a listener ends the process.
          if (!broken) client.removeListener("error", ignore);
          client.release(broken);
        },
      });
    });
  });
}

/** The name of a prepared statement, derived from its text. */
function nameOf(text: string): string {
  return `skein_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

function hasQuery(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof (value as { query?: unknown }).query === "function";
}

function addressOf(options: unknown): string {
  const { host, port, database, connectionString } = (options ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof connectionString === "string" && URL.canParse(connectionString)) {
    const url = new URL(connectionString);
    return `${url.host}${url.pathname}`;
  }
  return `${host ?? "localhost"}:${port ?? 5432}/${database ?? ""}`;
}
