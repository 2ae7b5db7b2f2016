import { openSqlite } from "./open-sqlite.ts";
import { sqliteFailure } from "./sqlite-failure.ts";

/**
 * Finds SQL stored in a database file that runs when the file is read or written: `trigger "name"`, `view "name"` or
 * `generated column "name"`. Returns null if there is none. Skein creates none, and each could change what Skein writes.
 */
export async function findForeignCode(path: string): Promise<string | null> {
  const database = await openSqlite(path);
  try {
    const query = `SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')
      UNION ALL SELECT 'generated column', columns.name FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns
      WHERE tables.type = 'table' AND columns.hidden IN (2, 3) LIMIT 1`;
    const found = database.prepare(query).get() as { readonly type: string; readonly name: string } | undefined;
    return found == null ? null : `${found.type} ${JSON.stringify(found.name)}`;
  } catch (error) {
    throw sqliteFailure(error, path);
  } finally {
    database.close();
  }
}
