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

/** A server of the test's own, that may be stopped and started. */
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

/** What statements give, on a connection of their own. */
export async function rowsOf(sql: string, url?: string): Promise<Record<string, unknown>[]> {
  const client = postgres(url ?? (await postgresUrl()), { max: 1, onnotice: () => {} });
  try {
    return [...(await client.unsafe(sql))];
  } finally {
    await client.end();
  }
}

/** The URL of another database of the same server, as another user if need be. */
export async function urlWith(change: (url: URL) => void): Promise<string> {
  const url = new URL(await postgresUrl());
  change(url);
  return url.href;
}

/** Ends every connection but the one that asks. */
export const END_OTHERS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL";

/** Ways to open a store on a server. */
export const clients: readonly (readonly [name: string, open: (url: string) => Promise<SessionStore>])[] = [
  ["a url", (url) => openStore({ url })],
  ["a pool of pg", (url) => openStore({ sql: openPool(url) })],
];

/** Resolves to how many tries failed; `untyped` gets those that failed in a way that no caller could expect. */
export async function appendUntilDone(
  store: SessionStore,
  draft: typeof message & { id: string },
  untyped: (error: unknown) => void = () => {},
): Promise<number> {
  for (let failures = 0; ; failures++) {
    try {
      await store.append("a", [draft]);
      return failures;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "STORE_FAILED") untyped(error);
      await wait(10);
    }
  }
}
