import { exportSession } from "../../src/export/index.ts";
import type { SessionStore } from "../../src/index.ts";
import { listPages } from "../../src/stores/complete/list-pages.ts";

/** The calls of a store that still return a word, whatever their arguments. */
export async function tracesOf(store: SessionStore, word: string): Promise<readonly string[]> {
  const traces: string[] = [];
  const look = (where: string, value: unknown): void => {
    if (JSON.stringify(value ?? null).includes(word)) traces.push(where);
  };
  look("search", await store.search(word));
  look("search for a part", await store.search(`re:${word.slice(0, 14)}`));
  for (const deleted of [true, false]) {
    for await (const { items } of listPages(store, { deleted })) {
      for (const head of items) {
        const { id } = head.header;
        look(`${id}: listing`, head);
        if (deleted) await store.undelete(id);
        look(`${id}: head`, await store.head(id));
        for await (const entry of store.read(id)) {
          look(`${id}: ${entry.type} ${entry.id}`, entry);
          look(`${id}: look-up of ${entry.id}`, await store.getEntry(id, entry.id));
          const path = await store.path(id, entry.id);
          if (path !== null) look(`${id}: settings at ${entry.id}`, await store.settings(id, path));
        }
        look(`${id}: texts`, await store.readJson(id));
        look(`${id}: checkpoints`, await store.listCheckpoints(id));
        look(`${id}: export`, await exported(store, id));
        if (deleted) await store.delete(id);
      }
    }
  }
  return traces;
}

/** A session as it is exported. */
export async function exported(store: SessionStore, id: string): Promise<string> {
  let text = "";
  for await (const part of exportSession(store, id, { format: "jsonl" })) text += part;
  return text;
}
