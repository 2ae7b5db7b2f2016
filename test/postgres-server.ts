import { randomUUID } from "node:crypto";
import pg from "pg";
import postgres from "postgres";
import { type PostgresServer, startPostgres } from "../scripts/postgres.mjs";
import { onFileEnd } from "./on-file-end.ts";

let database: Promise<TestDatabase> | null = null;
let pool: pg.Pool | null = null;

interface TestDatabase {
  readonly url: string;
  remove(): Promise<void>;
}

/**
 * The URL of an empty database that the tests of a file share and that is dropped after them.
 *
 * It is on the server of `SKEIN_TEST_POSTGRES_URL`, or on a server that is started for the file.
 */
export async function postgresUrl(): Promise<string> {
  if (database === null) {
    database = makeDatabase();
    onFileEnd(close);
  }
  return (await database).url;
}

/** A pool of the `pg` package on the same database. */
export async function postgresPool(): Promise<pg.Pool> {
  const url = await postgresUrl();
  if (pool === null) {
    pool = new pg.Pool({ connectionString: url, max: 20 });
    // Without a listener, an error of an idle connection would end the process.
    pool.on("error", () => {});
  }
  return pool;
}

async function close(): Promise<void> {
  const [ended, removed] = [pool, database];
  pool = null;
  database = null;
  await ended?.end();
  await (await removed)?.remove();
}

async function makeDatabase(): Promise<TestDatabase> {
  const given = process.env.SKEIN_TEST_POSTGRES_URL;
  const server: PostgresServer | null = given ? null : await startPostgres();
  const url = new URL(given || (server as PostgresServer).url);
  const name = `skein_test_${randomUUID().replaceAll("-", "")}`;
  await runAlone(url.href, `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`);
  const made = new URL(url.href);
  made.pathname = `/${name}`;
  return {
    url: made.href,
    async remove() {
      if (server === null) await runAlone(url.href, `DROP DATABASE ${name} WITH (FORCE)`);
      else await server.stop();
    },
  };
}

async function runAlone(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}
