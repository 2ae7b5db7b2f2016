import type { PostgresHandle } from "./postgres-handle.ts";

const TABLES = ["sessions", "heads", "entries", "session_parents", "checkpoints", "search_index", "marks"];

/** Writes all tables anew, one after the other, each locked while it lasts: a plain `VACUUM` leaves bytes on their pages. */
export async function rewriteTables(handle: PostgresHandle): Promise<void> {
  for (const table of TABLES) await handle.write(`VACUUM (FULL) ${handle.schema}.${table}`);
}
