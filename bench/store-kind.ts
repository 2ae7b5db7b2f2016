import { join } from "node:path";
import type { SessionStore } from "skein";
import { openJsonlStore } from "skein/jsonl";
import { openMemoryStore } from "skein/memory";
import { openSqliteStore } from "skein/sqlite";

/** The stores that the benchmark measures. */
export type StoreKind = "memory" | "jsonl" | "sqlite";

/** The stores whose sessions outlive the process. */
export type DurableKind = Exclude<StoreKind, "memory">;

/** Opens a store with its files in a folder. */
export async function openStoreOf(
  kind: StoreKind,
  folder: string,
  durability: "flush" | "fsync" = "flush",
): Promise<SessionStore> {
  if (kind === "memory") return openMemoryStore();
  if (kind === "jsonl") return openJsonlStore({ directory: folder, durability });
  return openSqliteStore({ path: databasePath(folder) });
}

/** The URL of a store with its files in a folder. */
export function storeUrlOf(kind: DurableKind, folder: string): string {
  return kind === "jsonl" ? `jsonl:${folder}` : `sqlite:${databasePath(folder)}`;
}

/** The path of the SQLite store's database in a folder. */
export function databasePath(folder: string): string {
  return join(folder, "sessions.db");
}
