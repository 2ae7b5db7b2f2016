import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { onTestFinished } from "vitest";
import type { Entry } from "../../src/session/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/stores/sqlite/index.ts";

/** The path of a database that is gone after the test; any user may enter its directory. */
export async function makePath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-sqlite-"));
  await chmod(directory, 0o755);
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "skein.db");
}

/** A store that is closed after the test. */
export async function openStore(path: string, options: Partial<SqliteStoreOptions> = {}): Promise<SessionStore> {
  const store = await openSqliteStore({ path, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** Every row that a statement gives, on a connection of its own. */
export function rowsOf(path: string, sql: string): Record<string, unknown>[] {
  const database = new Database(path);
  try {
    return database.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    database.close();
  }
}

/** What SQLite itself finds wrong with a database. */
export function problemsOf(path: string): unknown[] {
  return rowsOf(path, "PRAGMA integrity_check")
    .map(({ integrity_check }) => integrity_check)
    .filter((line) => line !== "ok");
}

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

/** A program that runs in a process of its own. */
export interface Running {
  readonly child: ChildProcess;
  /** The lines it has printed so far; one that was cut short is left out. */
  lines(): string[];
  readonly ended: Promise<void>;
}

/** Starts a program on the compiled package; `shell` is what runs before it in the same shell. */
export function start(name: string, args: readonly string[], shell = ""): Running {
  const command = [process.execPath, "--no-warnings", program(name), ...args];
  const child =
    shell === ""
      ? spawn(command[0] as string, command.slice(1), { stdio: ["ignore", "pipe", "inherit"] })
      : spawn("bash", ["-c", `${shell}; exec "$@"`, "bash", ...command], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  return { child, lines: () => text.split("\n").slice(0, -1), ended: once(child, "close").then(() => {}) };
}

/** Runs a program to its end and returns what it printed. */
export async function runProgram(name: string, args: readonly string[], shell = ""): Promise<string[]> {
  const { lines, ended } = start(name, args, shell);
  await ended;
  return lines();
}

function program(name: string): string {
  const built = fileURLToPath(new URL("../../dist/stores/sqlite/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  return fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
}
