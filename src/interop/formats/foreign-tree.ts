import type { Entry } from "../../session/log/entry.ts";

/** Maps nodes to the foreign ids that they were written under, so that children can name their parents. */
export class ForeignTree {
  readonly #ids = new Map<string, string | null>();

  /** The foreign id of the nearest ancestor that was written; null if there is none. */
  parentOf(entry: Pick<Entry, "parentId">): string | null {
    return entry.parentId === null ? null : (this.#ids.get(entry.parentId) ?? null);
  }

  /** Records that the entry was written under this id. */
  put(entry: Pick<Entry, "id">, foreignId: string): void {
    this.#ids.set(entry.id, foreignId);
  }

  /** Records that the entry was not written: its children are attached to its parent. */
  skip(entry: Pick<Entry, "id" | "parentId">): void {
    this.#ids.set(entry.id, this.parentOf(entry));
  }

  /** The foreign id of a node (of a skipped node: that of its parent); undefined if it was neither written nor skipped. */
  idOf(entryId: string): string | null | undefined {
    return this.#ids.get(entryId);
  }
}
