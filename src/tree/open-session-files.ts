import { resolve } from "node:path";
import type { JsonlStore, JsonlStoreOptions } from "../stores/jsonl/index.ts";
import { defaultSessionDirectory } from "./home.ts";

/** Opens a directory of session files. The JSONL store is imported lazily, since most programs use another store. */
export async function openSessionFiles(options: JsonlStoreOptions): Promise<JsonlStore> {
  const { openJsonlStore } = await import("../stores/jsonl/index.ts");
  return openJsonlStore({ create: isChosen(options.directory), ...options });
}

/** Whether Skein has chosen the directory, so that its missing parents are created too. */
function isChosen(directory: string): boolean {
  return resolve(directory) === resolve(defaultSessionDirectory());
}
