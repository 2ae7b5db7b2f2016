import { type Entry, entryCharacters } from "../../session/entry.ts";
import type { ReadOptions, SessionStore } from "../../session/store.ts";
import { walkUp } from "../../tree/path-reader.ts";

/** How much of what was said one answer may hold, about. */
export const ANSWER_CHARACTERS_MAX: number = 32 * 1024 * 1024;
/** How many entries are read at first; twice as many each time, as long as they are small. */
const BATCH_FIRST = 8;
const BATCH_MAX = 256;
/** What an entry may take on average to count as small. */
const SMALL_CHARACTERS = 16 * 1024;

/**
 * A page of the log as JSON texts, and whether more follow. It ends early, though not before its first entry, where the
 * entries take more than an answer may hold.
 */
export async function readEntriesPage(
  store: SessionStore,
  sessionId: string,
  { limit, reverse, ...range }: ReadOptions & { readonly limit: number },
): Promise<{ readonly items: readonly string[]; readonly more: boolean }> {
  const items: string[] = [];
  let [characters, batch, from] = [0, BATCH_FIRST, {}];
  for (;;) {
    if (items.length > 0) batch = characters <= items.length * SMALL_CHARACTERS ? batch * 2 : BATCH_FIRST;
    const wanted = Math.min(limit - items.length, batch, BATCH_MAX);
    const found = await store.readJson(sessionId, { ...range, ...from, reverse: reverse === true, limit: wanted + 1 });
    for (const [i, text] of found.slice(0, wanted).entries()) {
      items.push(text);
      characters += text.length;
      if (items.length === limit || characters > ANSWER_CHARACTERS_MAX) return { items, more: i + 1 < found.length };
    }
    if (found.length <= wanted) return { items, more: false };
    const { seq } = JSON.parse(items.at(-1) as string) as Entry;
    from = reverse === true ? { before: seq } : { after: seq };
  }
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
