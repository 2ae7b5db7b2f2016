import { nextSlice } from "../../internal/long-work.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { headWeight } from "./head-weight.ts";
import { PAGE_CHARACTERS_MAX } from "./list-page.ts";
import { entryText, findTerm, headTexts, matchOf, type SearchTerm } from "../../session/search.ts";
import type { SearchHit, SearchMatch } from "../../session/store.ts";

const MATCHES_MAX = 3;
/** After how many entries the scan yields to the event loop. */
const TURN_ENTRIES = 256;
/** After how many compared characters within one entry the scan waits for its next slice. */
const TURN_CHARACTERS = 8 * 1024 * 1024;

/**
 * Searches without an index: reads sessions one after the other until `limit` contain every term. It stops early when the
 * heads of the hits are as large as a page of a listing may be, so that large metadata cannot fill the memory.
 */
export async function searchByScan(
  heads: AsyncIterable<SessionHead>,
  read: (sessionId: string) => AsyncIterable<Entry>,
  terms: readonly SearchTerm[],
  limit: number,
): Promise<SearchHit[]> {
  const hits: SearchHit[] = [];
  let characters = 0;
  for await (const head of heads) {
    const hit = await searchSession(head, read(head.header.id), terms);
    if (hit === null) continue;
    characters += headWeight(head);
    if (hits.push(hit) >= limit || characters > PAGE_CHARACTERS_MAX) break;
  }
  return hits;
}

async function searchSession(
  head: SessionHead,
  entries: AsyncIterable<Entry>,
  terms: readonly SearchTerm[],
): Promise<SearchHit | null> {
  const texts = headTexts(head);
  const missing = new Set(terms.filter((term) => !texts.some((text) => findTerm(text, term) !== null)));
  const matches: SearchMatch[] = [];
  for await (const entry of entries) {
    // A store that reads synchronously would otherwise block the event loop.
    if (entry.seq % TURN_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
    const text = entryText(entry);
    if (text === "") continue;
    const lower = text.toLowerCase();
    const found: { readonly index: number; readonly length: number }[] = [];
    let characters = 0;
    for (const term of terms) {
      const position = findTerm(text, term, lower);
      if (position !== null) missing.delete(term);
      if (position !== null) found.push(position);
      characters += text.length;
      if (characters < TURN_CHARACTERS) continue;
      characters = 0;
      await nextSlice();
    }
    const [first] = found.sort((a, b) => a.index - b.index);
    if (first !== undefined && matches.length < MATCHES_MAX) matches.push(matchOf(entry, text, first));
    if (missing.size === 0 && matches.length === MATCHES_MAX) break;
  }
  return missing.size === 0 ? { head, matches } : null;
}
