import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { onTestFinished } from "vitest";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/stores/sqlite/index.ts";

/** The path of a database that is removed after the test; any user may enter its directory. */
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

/** All rows of a statement, on a separate connection. */
export function rowsOf(path: string, sql: string): Record<string, unknown>[] {
  const database = new Database(path);
  try {
    return database.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    database.close();
  }
}

/** The problems that SQLite's integrity check finds in a database. */
export function problemsOf(path: string): unknown[] {
  return rowsOf(path, "PRAGMA integrity_check")
    .map(({ integrity_check }) => integrity_check)
    .filter((line) => line !== "ok");
}
