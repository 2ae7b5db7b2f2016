import { SessionError } from "../../session/errors.ts";
import { sqliteFailure } from "./sqlite-failure.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";

type DatabaseConstructor = new (path: string) => SqliteDatabase;

/** Opens a file with the `libsql` package. @throws {SessionError} `DRIVER_MISSING` when it is not installed. */
export async function openLibsql(path: string): Promise<SqliteDatabase> {
  const Database = await loadLibsql();
  try {
    return new Database(path);
  } catch (error) {
    throw sqliteFailure(error, path);
  }
}

async function loadLibsql(): Promise<DatabaseConstructor> {
  try {
    return (await import("libsql")).default as unknown as DatabaseConstructor;
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "The SQLite store needs a driver: install the package libsql, or run on Node 22.13 or later.",
      { cause },
    );
  }
}
