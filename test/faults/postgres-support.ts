import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import postgres from "postgres";
import { onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "../../scripts/postgres.mjs";
import { SessionError } from "../../src/session/errors.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/stores/postgres/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import type { message } from "./store-support.ts";

/** A schema that no other test uses. */
export function newSchema(): string {
  return `skein_${randomUUID().slice(0, 8)}`;
}

/** Starts a separate server for a test, which can be stopped and restarted. */
export async function startServer(): Promise<PostgresServer> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  return server;
}

/** A store that is closed after the test. */
export async function openStore(options: PostgresStoreOptions): Promise<SessionStore> {
  const store = await openPostgresStore(options);
  onTestFinished(() => store.close());
  return store;
}

/** A pool of the `pg` package that is closed after the test. */
export function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  return pool;
}

/** Runs SQL on a separate connection and returns the rows. */
export async function rowsOf(sql: string, url?: string): Promise<Record<string, unknown>[]> {
  const client = postgres(url ?? (await postgresUrl()), { max: 1, onnotice: () => {} });
  try {
    return [...(await client.unsafe(sql))];
  } finally {
    await client.end();
  }
}

/** The URL of the test server with changes, such as another database or user. */
export async function urlWith(change: (url: URL) => void): Promise<string> {
  const url = new URL(await postgresUrl());
  change(url);
  return url.href;
}

/** SQL that closes every connection except its own. */
export const END_OTHERS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL";

/** The kinds of clients to open a store with. */
export const clients: readonly (readonly [name: string, open: (url: string) => Promise<SessionStore>])[] = [
  ["a url", (url) => openStore({ url })],
  ["a pool of pg", (url) => openStore({ sql: openPool(url) })],
];

/** Appends until it succeeds, and returns the number of failed attempts. `unexpected` is called with errors other than STORE_FAILED. */
export async function appendUntilDone(
  store: SessionStore,
  draft: typeof message & { id: string },
  unexpected: (error: unknown) => void = () => {},
): Promise<number> {
  for (let failures = 0; ; failures++) {
    try {
      await store.append("a", [draft]);
      return failures;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "STORE_FAILED") unexpected(error);
      await wait(10);
    }
  }
}
