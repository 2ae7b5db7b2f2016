import { type Entry, entryCharacters } from "../../../session/log/entry.ts";
import type { ReadOptions, SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";

/** How much of what was said one answer may hold, about. */
export const ANSWER_CHARACTERS_MAX: number = 32 * 1024 * 1024;
/**
 * A page of the log as JSON texts, and whether more follow. It ends early, though not before its first entry, where the
 * entries take more than an answer may hold.
 */
export async function readEntriesPage(
  store: SessionStore,
  sessionId: string,
  { limit, ...options }: ReadOptions & { readonly limit: number },
): Promise<{ readonly items: readonly string[]; readonly more: boolean }> {
  const found = await store.readJson(sessionId, { ...options, limit: limit + 1, charactersMax: ANSWER_CHARACTERS_MAX });
  // Cut short, it ends with the entry that was too much, after which there may be more.
  const whole = found.reduce((sum, text) => sum + text.length, 0) <= ANSWER_CHARACTERS_MAX;
  return { items: found.slice(0, limit), more: found.length > limit || !whole };
}

/** The last nodes of the path to an entry, oldest first, and whether more stand before them; likewise. */
export async function readPathPage(
  store: SessionStore,
  sessionId: string,
  fromId: string,
  limit: number,
): Promise<{ readonly items: readonly Entry[]; readonly more: boolean }> {
  const items: Entry[] = [];
  let characters = 0;
  for await (const entry of walkUp(store, sessionId, fromId)) {
    if (items.length === limit || characters > ANSWER_CHARACTERS_MAX) return { items: items.reverse(), more: true };
    items.push(entry);
    characters += entryCharacters(entry);
  }
  return { items: items.reverse(), more: false };
}
