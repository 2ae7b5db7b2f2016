import type { JsonlStore, JsonlStoreOptions } from "../stores/jsonl/index.ts";

/** Opens a directory of session files. The store is loaded here: most programs keep their sessions elsewhere. */
export async function openSessionFiles(options: JsonlStoreOptions): Promise<JsonlStore> {
  const { openJsonlStore } = await import("../stores/jsonl/index.ts");
  return openJsonlStore(options);
}
