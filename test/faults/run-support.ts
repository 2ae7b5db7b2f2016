import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SessionStore } from "../../src/session/store.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";

/** The stores in which a run can be kept and which another process can open. */
export const places = ["file", "jsonl", "sqlite"] as const;

/** The argument of a program for a path in a directory. */
export function pathOf(place: (typeof places)[number], directory: string): string {
  if (place === "jsonl") return directory;
  return join(directory, place === "file" ? "run.jsonl" : "skein.db");
}

/** The store at a place; a file is in the store of its directory. */
export async function storeAt(place: (typeof places)[number], directory: string): Promise<SessionStore> {
  const store =
    place === "sqlite"
      ? await openSqliteStore({ path: pathOf(place, directory) })
      : await openJsonlStore({ directory });
  onTestFinished(() => store.close());
  return store;
}
