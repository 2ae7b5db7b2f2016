import { createHash } from "node:crypto";
import type {
  Answer,
  Ear,
  ListenHandlers,
  PostgresConnection,
  Row,
  SqlValue,
  Statements,
} from "./postgres-connection.ts";

/** A statement as the `pg` package takes it. */
export interface PgQuery {
  readonly text: string;
  readonly values: unknown[];
  readonly name?: string;
}

/** What the `pg` package answers to a statement. */
export interface PgResult {
  readonly rows: unknown[];
  readonly rowCount?: number | null;
}

/** A connected client of the `pg` package. */
export interface PgClient {
  // Written as methods are: what a client's own types say in more detail then still fits.
  query(query: PgQuery): Promise<PgResult>;
  on(event: string, listener: (value: unknown) => void): unknown;
  removeListener(event: string, listener: (value: unknown) => void): unknown;
}

/** A client of a pool, which goes back to it when it is released. */
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

/** A client that nobody else uses until it is let go of. */
interface TakenClient {
  readonly client: PgClient;
  /** Lets go of it; a pool throws one away that may be broken. */
  release(broken: boolean): void;
}

/** Uses a caller's pool or single client, which the caller closes. A single one takes one call after the other. */
export class PgConnection implements PostgresConnection {
  readonly address: string;
  readonly #source: PgPool | PgClient;
  readonly #prepare: boolean;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(source: PgPool | PgClient, prepare: boolean) {
    this.address = addressOf(isPgPool(source) ? (source as { options?: unknown }).options : source);
    this.#source = source;
    this.#prepare = prepare;
  }

  query(sql: string, values: readonly SqlValue[]): Promise<Answer> {
    return this.#use((client) => this.#run(client, sql, values));
  }

  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T> {
    return this.#use(async (client, isSound) => {
      await client.query({ text: BEGIN, values: [] });
      try {
        const result = await work({ query: (sql, values) => this.#run(client, sql, values) });
        await client.query({ text: "COMMIT", values: [] });
        return result;
      } catch (error) {
        await client.query({ text: "ROLLBACK", values: [] }).then(isSound, () => {});
        throw error;
      }
    });
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Ear> {
    const { client, release } = await this.#take();
    const hear = (message: unknown): void => {
      const { channel: sentTo, payload = "" } = message as { channel: string; payload?: string };
      if (sentTo === channel) handlers.notified(payload);
    };
    client.on("notification", hear);
    try {
      await client.query({ text: `LISTEN "${channel}"`, values: [] });
    } catch (error) {
      client.removeListener("notification", hear);
      release(true);
      throw error;
    }
    handlers.listening();
    // A connection that still listens must not go back to its pool.
    if (!isPgPool(this.#source)) release(false);
    return {
      close: async () => {
        client.removeListener("notification", hear);
        if (isPgPool(this.#source)) release(true);
        else await this.query(`UNLISTEN "${channel}"`, []);
      },
    };
  }

  async close(): Promise<void> {}

  /** Runs `work` on a client, which is broken where that fails without saying that the client `isSound`. */
  async #use<T>(work: (client: PgClient, isSound: () => void) => Promise<T>): Promise<T> {
    const { client, release } = await this.#take();
    let broken = true;
    const isSound = (): void => {
      broken = false;
    };
    try {
      const result = await work(client, isSound);
      isSound();
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

  async #take(): Promise<TakenClient> {
    if (isPgPool(this.#source)) return takeFrom(this.#source);
    const before = this.#turn;
    let release = (): void => {};
    this.#turn = new Promise<void>((resolve) => (release = resolve));
    await before;
    return { client: this.#source, release };
  }
}

/** A client of a pool whose failures end nothing but what is asked of it, until it is let go of. */
function takeFrom(pool: PgPool): Promise<TakenClient> {
  return new Promise((resolve, reject) => {
    // The pool no longer hears what breaks from here on, which may come with what made the client ready: a promise of
    // the pool's would be too late.
    pool.connect((error, client) => {
      if (client === undefined) return reject(error);
      const ignore = (): void => {};
      client.on("error", ignore);
      resolve({
        client,
        release(broken) {
          // Letting go of a connection may still make it fail, and a failure that nobody hears ends the process.
          if (!broken) client.removeListener("error", ignore);
          client.release(broken);
        },
      });
    });
  });
}

/** A name for a prepared statement, the same for the same text. */
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
