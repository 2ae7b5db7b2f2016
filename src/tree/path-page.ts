import { type Entry, entryCharacters } from "../session/log/entry.ts";
import type { SessionStore } from "../session/store.ts";
import { walkUp } from "./path-reader.ts";

/** About how many characters of entries a page may have; a larger entry is a page by itself. */
export const PAGE_CHARACTERS_MAX: number = 4 * 1024 * 1024;

/** The last nodes of the path to an entry, oldest first, and whether there are more before them. The limits of a page apply. */
export async function readPathPage(
  store: SessionStore,
  sessionId: string,
  fromId: string,
  limit: number,
): Promise<{ readonly items: readonly Entry[]; readonly more: boolean }> {
  const items: Entry[] = [];
  let characters = 0;
  for await (const entry of walkUp(store, sessionId, fromId)) {
    characters += entryCharacters(entry);
    const isFull = items.length === limit || (items.length > 0 && characters > PAGE_CHARACTERS_MAX);
    if (isFull) return { items: items.reverse(), more: true };
    items.push(entry);
  }
  return { items: items.reverse(), more: false };
}

/**
 * The first nodes after an entry on the path to a leaf, oldest first, and whether there are more; none if the entry is not on
 * that path. Walks up from the leaf, and keeps no more in memory than the page has.
 */
export async function readPathAfter(
  store: SessionStore,
  sessionId: string,
  {
    leafId,
    after,
    limit,
  }: { readonly leafId: string | null; readonly after: Pick<Entry, "id" | "seq">; readonly limit: number },
): Promise<{ readonly items: readonly Entry[]; readonly more: boolean }> {
  const nearest = new PathWindow(limit, PAGE_CHARACTERS_MAX);
  for await (const entry of leafId === null ? [] : walkUp(store, sessionId, leafId)) {
    if (entry.id === after.id) return nearest.page();
    if (entry.seq < after.seq) break;
    nearest.add(entry);
  }
  return { items: [], more: false };
}

/** A sliding window of the last entries on the way up a path: as many as a page may have, and at least one. */
export class PathWindow {
  readonly #limit: number;
  readonly #charactersMax: number;
  /** The lowest in the tree first. */
  readonly #entries: { readonly entry: Entry; readonly characters: number }[] = [];
  #characters = 0;
  #dropped = false;

  constructor(limit: number, charactersMax: number = PAGE_CHARACTERS_MAX / 2) {
    this.#limit = limit;
    this.#charactersMax = charactersMax;
  }

  add(entry: Entry): void {
    const characters = entryCharacters(entry);
    this.#entries.push({ entry, characters });
    this.#characters += characters;
    while (this.#entries.length > 1 && this.#isTooMuch()) {
      this.#characters -= this.#entries.shift()?.characters ?? 0;
      this.#dropped = true;
    }
  }

  /** The entries in the window, the highest first, and whether earlier ones were dropped. */
  page(): { readonly items: readonly Entry[]; readonly more: boolean } {
    const items = this.#entries.slice(-this.#limit).map(({ entry }) => entry);
    return { items: items.reverse(), more: this.#dropped || this.#entries.length > this.#limit };
  }

  #isTooMuch(): boolean {
    return this.#entries.length > this.#limit || this.#characters > this.#charactersMax;
  }
}
