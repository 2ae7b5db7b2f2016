import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import pg from "pg";
import postgres from "postgres";
import { onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "../../scripts/postgres.mjs";
import type { Entry } from "../../src/session/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/stores/postgres/index.ts";
import { postgresUrl } from "../postgres-server.ts";

/** One message. */
export const message = { type: "message", message: { role: "user", content: "hello" } } as const;

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

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

/** Resolves to what an operation was refused with. */
export async function refusalOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const refusal = await work.then(
    () => ({ code: "done", message: "" }),
    (error: unknown) => error,
  );
  return refusal as { code: string; message: string };
}

/** A program that runs in a process of its own. */
export interface Running {
  readonly child: ChildProcess;
  /** The lines it has printed so far; one that was cut short is left out. */
  lines(): string[];
  readonly ended: Promise<void>;
}

/** Starts a program on the compiled package. */
export function start(name: string, args: readonly string[]): Running {
  const built = fileURLToPath(new URL("../../dist/stores/postgres/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  return { child, lines: () => text.split("\n").slice(0, -1), ended: once(child, "close").then(() => {}) };
}

/** Runs a program to its end and returns what it printed. */
export async function runProgram(name: string, args: readonly string[]): Promise<string[]> {
  const { lines, ended } = start(name, args);
  await ended;
  return lines();
}
