import type { Entry } from "../../session/log/entry.ts";

/** Which foreign id each node got while a log is written, so that children find their parents. */
export class ForeignTree {
  readonly #ids = new Map<string, string | null>();

  /** The foreign parent of an entry: the nearest ancestor that was written; null where there is none. */
  parentOf(entry: Pick<Entry, "parentId">): string | null {
    return entry.parentId === null ? null : (this.#ids.get(entry.parentId) ?? null);
  }

  /** The entry was written under this id. */
  put(entry: Pick<Entry, "id">, foreignId: string): void {
    this.#ids.set(entry.id, foreignId);
  }

  /** The entry was not written: its children hang on its parent. */
  skip(entry: Pick<Entry, "id" | "parentId">): void {
    this.#ids.set(entry.id, this.parentOf(entry));
  }

  /** The foreign id of a node; undefined for one that was not written. */
  idOf(entryId: string): string | null | undefined {
    return this.#ids.get(entryId);
  }
}
