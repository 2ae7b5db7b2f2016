import { setTimeout as sleep } from "node:timers/promises";
import { openBareDatabase } from "./bare-database.ts";
import { databasePath, type StoreKind } from "./store-kind.ts";

/** Long enough for the JSONL store to write its index, release its lock and close its file. */
export const PAUSE_MS = 40;

/**
 * Lets a store finish pending writes: the JSONL store its index, the SQLite store its write-ahead log, so that sizes,
 * copies and byte counts are correct. Safe while the store is open, since the benchmark and the store use the same copy
 * of SQLite.
 */
export async function settleFiles(kind: StoreKind, folder: string): Promise<void> {
  if (kind === "jsonl") await sleep(PAUSE_MS);
  if (kind !== "sqlite") return;
  const database = await openBareDatabase(databasePath(folder));
  database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  database.close();
}
