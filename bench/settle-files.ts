import { setTimeout as sleep } from "node:timers/promises";
import { openBareDatabase } from "./bare-database.ts";
import { databasePath, type StoreKind } from "./store-kind.ts";

/** Long enough for the JSONL store to write to its index and to let go of what it holds. */
export const PAUSE_MS = 40;

/**
 * Lets a store write what it writes later: the JSONL store its index, and the SQLite store what is in the write-ahead
 * log, so that sizes, copies and counts of bytes mean something. Safe while the store is open, since the benchmark and
 * the store use one copy of SQLite.
 */
export async function settleFiles(kind: StoreKind, folder: string): Promise<void> {
  if (kind === "jsonl") await sleep(PAUSE_MS);
  if (kind !== "sqlite") return;
  const database = await openBareDatabase(databasePath(folder));
  database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  database.close();
}
