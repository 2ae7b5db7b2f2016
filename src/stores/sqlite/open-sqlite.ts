import { SessionError } from "../../session/errors.ts";
import { sqliteFailure } from "./sqlite-failure.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";

/**
 * Opens a file: with the driver asked for, or else the runtime's own where it has one, and the package `libsql` where not.
 *
 * @throws {SessionError} `DRIVER_MISSING` when there is no such driver.
 */
export async function openSqlite(path: string, driver?: "node:sqlite" | "libsql"): Promise<SqliteDatabase> {
  // An import of a module that this Node does not have could only be told from other failures by its message.
  const own = process.getBuiltinModule?.("node:sqlite") as
    | { readonly DatabaseSync: new (path: string) => SqliteDatabase }
    | undefined;
  if (driver === "node:sqlite" && own === undefined) {
    throw new SessionError(
      "DRIVER_MISSING",
      `Node ${process.versions.node} has no node:sqlite: run on Node 22.13 or later, or install the package libsql.`,
    );
  }
  const open = own === undefined || driver === "libsql" ? await loadLibsql() : () => new own.DatabaseSync(path);
  try {
    return open(path);
  } catch (error) {
    throw sqliteFailure(error, path);
  }
}

async function loadLibsql(): Promise<(path: string) => SqliteDatabase> {
  try {
    const Libsql = (await import("libsql")).default as unknown as new (path: string) => SqliteDatabase;
    return (path) => new Libsql(path);
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "The SQLite store needs a driver: install the package libsql, or run on Node 22.13 or later.",
      { cause },
    );
  }
}
