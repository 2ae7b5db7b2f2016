import { SessionError } from "../../session/errors.ts";
import { sqliteFailure } from "./sqlite-failure.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";

/**
 * Opens a database file with the given driver. By default, uses `node:sqlite` if this Node has it, else the package `libsql`.
 *
 * @throws {SessionError} `DRIVER_MISSING` if the driver is not available.
 */
export async function openSqlite(path: string, driver?: "node:sqlite" | "libsql"): Promise<SqliteDatabase> {
  // Avoids `import()`: if this Node lacks the module, only the message of the error would show that.
  const builtIn = process.getBuiltinModule?.("node:sqlite") as
    | { readonly DatabaseSync: new (path: string) => SqliteDatabase }
    | undefined;
  if (driver === "node:sqlite" && builtIn === undefined) {
    throw new SessionError(
      "DRIVER_MISSING",
      `Node ${process.versions.node} has no node:sqlite: run on Node 22.13 or later, or install the package libsql.`,
    );
  }
  const open = builtIn === undefined || driver === "libsql" ? await loadLibsql() : () => new builtIn.DatabaseSync(path);
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
