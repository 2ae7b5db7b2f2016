import { openBareDatabase } from "./bare-database.ts";
import { databasePath, type StoreKind } from "./store-kind.ts";

/**
 * Moves what a SQLite store has in its write-ahead log to the database, so that sizes, copies and counts of bytes mean
 * something. Safe while the store is open, since both use one copy of SQLite.
 */
export async function settleFiles(kind: StoreKind, folder: string): Promise<void> {
  if (kind !== "sqlite") return;
  const database = await openBareDatabase(databasePath(folder));
  database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  database.close();
}
