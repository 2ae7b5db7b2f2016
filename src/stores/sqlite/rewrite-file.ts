import type { SqliteHandle } from "./sqlite-handle.ts";

/**
 * Writes the database file anew without what was removed from it, and empties the write-ahead log.
 *
 * @throws {SessionError} `SESSION_BUSY` while others write, `STORE_FAILED` when there is no room for it.
 */
export async function rewriteFile(handle: SqliteHandle): Promise<void> {
  handle.exec("PRAGMA secure_delete = ON");
  handle.exec("VACUUM");
  // Until the write-ahead log is home, the file is as long as it was, and the log has what was removed.
  handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}
