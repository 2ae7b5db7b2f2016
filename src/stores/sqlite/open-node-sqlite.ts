import { SessionError } from "../../session/errors.ts";
import { sqliteFailure } from "./sqlite-failure.ts";
import type { SqliteDatabase } from "./sqlite-handle.ts";

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase;
}

/** Whether this runtime has a driver of its own. */
export function hasNodeSqlite(): boolean {
  return loadNodeSqlite() !== undefined;
}

/** Opens a file with the runtime's own driver. @throws {SessionError} `DRIVER_MISSING` when it has none. */
export function openNodeSqlite(path: string): SqliteDatabase {
  const driver = loadNodeSqlite();
  if (driver === undefined) {
    throw new SessionError(
      "DRIVER_MISSING",
      `Node ${process.versions.node} has no node:sqlite: run on Node 22.13 or later, or install the package libsql.`,
    );
  }
  try {
    return new driver.DatabaseSync(path);
  } catch (error) {
    throw sqliteFailure(error, path);
  }
}

function loadNodeSqlite(): NodeSqlite | undefined {
  // An import of a module that this Node does not have could only be told from other failures by its message.
  return process.getBuiltinModule?.("node:sqlite") as NodeSqlite | undefined;
}
