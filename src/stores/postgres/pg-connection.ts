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

/** Uses a caller's pool, which the caller closes. */
export class PgPoolConnection implements PostgresConnection {
  readonly place: string;
  readonly #pool: PgPool;
  readonly #prepare: boolean;

  constructor(pool: PgPool, prepare: boolean) {
    this.place = placeOf((pool as { options?: unknown }).options);
    this.#pool = pool;
    this.#prepare = prepare;
  }

  query(sql: string, values: readonly SqlValue[]): Promise<Answer> {
    return run(this.#pool, sql, values, this.#prepare);
  }

  async transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T> {
    const { client, ended } = await takeClient(this.#pool);
    let broken = true;
    try {
      const result = await enclose(client, this.#prepare, work, () => {
        broken = false;
      });
      broken = false;
      return result;
    } finally {
      ended();
      client.release(broken);
    }
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Ear> {
    const { client } = await takeClient(this.#pool);
    const ear = await listenOn(client, channel, handlers);
    let open = true;
    return {
      close: async () => {
        if (!open) return;
        open = false;
        ear.close();
        // A connection that still listens must not go back to the pool.
        client.release(true);
      },
    };
  }

  async close(): Promise<void> {}
}

/** Uses a caller's single client, which the caller closes. Its one connection takes one transaction after the other. */
export class PgClientConnection implements PostgresConnection {
  readonly place: string;
  readonly #client: PgClient;
  readonly #prepare: boolean;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(client: PgClient, prepare: boolean) {
    this.place = placeOf(client);
    this.#client = client;
    this.#prepare = prepare;
  }

  query(sql: string, values: readonly SqlValue[]): Promise<Answer> {
    return this.#takeTurn(() => run(this.#client, sql, values, this.#prepare));
  }

  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T> {
    return this.#takeTurn(() => enclose(this.#client, this.#prepare, work, () => {}));
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Ear> {
    const ear = await this.#takeTurn(() => listenOn(this.#client, channel, handlers));
    return {
      close: async () => {
        ear.close();
        await this.query(`UNLISTEN "${channel}"`, []).catch(() => {});
      },
    };
  }

  async close(): Promise<void> {}

  #takeTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}

/** A client of a pool whose failures end nothing but what is asked of it, until `ended` is called. */
function takeClient(pool: PgPool): Promise<{ readonly client: PgPoolClient; ended(): void }> {
  return new Promise((resolve, reject) => {
    // The pool no longer hears what breaks from here on, which may come with what made the client ready: a promise of
    // the pool's would be too late.
    pool.connect((error, client) => {
      if (client === undefined) reject(error);
      else resolve({ client, ended: ignoreErrors(client) });
    });
  });
}

async function listenOn(client: PgClient, channel: string, handlers: ListenHandlers): Promise<{ close(): void }> {
  const notified = (message: unknown): void => {
    const { channel: sentTo, payload = "" } = message as { channel: string; payload?: string };
    if (sentTo === channel) handlers.notified(payload);
  };
  const lost = (): void => handlers.lost();
  client.on("notification", notified);
  client.on("error", lost);
  client.on("end", lost);
  const close = (): void => {
    client.removeListener("notification", notified);
    client.removeListener("end", lost);
    // Letting go of a connection may still make it fail, and a failure that nobody hears ends the process.
    ignoreErrors(client);
    client.removeListener("error", lost);
  };
  try {
    await client.query({ text: `LISTEN "${channel}"`, values: [] });
  } catch (error) {
    close();
    (client as Partial<PgPoolClient>).release?.(true);
    throw error;
  }
  handlers.listening();
  return { close };
}

async function enclose<T>(
  client: PgClient,
  prepare: boolean,
  work: (statements: Statements) => Promise<T>,
  undone: () => void,
): Promise<T> {
  await client.query({ text: BEGIN, values: [] });
  try {
    const result = await work({ query: (sql, values) => run(client, sql, values, prepare) });
    await client.query({ text: "COMMIT", values: [] });
    return result;
  } catch (error) {
    await client.query({ text: "ROLLBACK", values: [] }).then(undone, () => {});
    throw error;
  }
}

async function run(
  client: Pick<PgClient, "query">,
  text: string,
  values: readonly SqlValue[],
  prepare: boolean,
): Promise<Answer> {
  const named = prepare && values.length > 0;
  const { rows, rowCount } = await client.query({ text, values: [...values], ...(named && { name: nameOf(text) }) });
  return Object.assign(rows as Row[], { count: rowCount ?? 0 });
}

const names = new Map<string, string>();

/** A name for a prepared statement, the same for the same text. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `skein_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    names.set(text, name);
  }
  return name;
}

function ignoreErrors(client: PgClient): () => void {
  const ignore = (): void => {};
  client.on("error", ignore);
  return () => void client.removeListener("error", ignore);
}

function hasQuery(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof (value as { query?: unknown }).query === "function";
}

function placeOf(options: unknown): string {
  const { host, port, database, connectionString } = (options ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof connectionString === "string" && URL.canParse(connectionString)) {
    const url = new URL(connectionString);
    return `${url.host}${url.pathname}`;
  }
  return `${host ?? "localhost"}:${port ?? 5432}/${database ?? ""}`;
}
