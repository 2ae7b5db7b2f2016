import type { ReadOptions, SessionStore } from "../../../session/store.ts";
import { PAGE_CHARACTERS_MAX } from "../../../tree/path-page.ts";

/** About how many characters an answer without pages may have; a larger one is refused with `TOO_LARGE`. */
export const WHOLE_CHARACTERS_MAX: number = 16 * 1024 * 1024;

/**
 * A page of the log as JSON texts, and whether more follow. It ends early if the entries are too large for one answer, but has at
 * least one entry.
 */
export async function readEntriesPage(
  store: SessionStore,
  sessionId: string,
  { limit, ...options }: ReadOptions & { readonly limit: number },
): Promise<{ readonly items: readonly string[]; readonly more: boolean }> {
  const found = await store.readJson(sessionId, { ...options, limit: limit + 1, charactersMax: PAGE_CHARACTERS_MAX });
  // If it was cut short, the last entry is the one that exceeded the limit; it is left for the next page unless it is the first.
  const whole = found.reduce((sum, text) => sum + text.length, 0) <= PAGE_CHARACTERS_MAX;
  const items = found.slice(0, whole ? limit : Math.max(1, Math.min(limit, found.length - 1)));
  return { items, more: found.length > limit || !whole };
}
