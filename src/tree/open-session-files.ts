import { resolve } from "node:path";
import type { JsonlStore, JsonlStoreOptions } from "../stores/jsonl/index.ts";
import { defaultSessionDirectory } from "./home.ts";

/** Opens a directory of session files. The store is loaded here: most programs keep their sessions elsewhere. */
export async function openSessionFiles(options: JsonlStoreOptions): Promise<JsonlStore> {
  const { openJsonlStore } = await import("../stores/jsonl/index.ts");
  return openJsonlStore({ create: isChosen(options.directory), ...options });
}

/** Whether Skein itself chose the directory, so that it is made with all that is missing above it. */
function isChosen(directory: string): boolean {
  return resolve(directory) === resolve(defaultSessionDirectory());
}
