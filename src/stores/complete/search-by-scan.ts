import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { entryText, findTerm, headTexts, matchOf, type SearchTerm } from "../../session/search.ts";
import type { SearchHit, SearchMatch } from "../../session/store.ts";

const MATCHES_MAX = 3;
/** How many entries are read before others have their turn. */
const TURN_ENTRIES = 256;

/** The first of some sessions in which every term occurs, found by reading each of them. */
export async function searchByScan(
  heads: AsyncIterable<SessionHead>,
  read: (sessionId: string) => AsyncIterable<Entry>,
  terms: readonly SearchTerm[],
  limit: number,
): Promise<SearchHit[]> {
  const hits: SearchHit[] = [];
  for await (const head of heads) {
    const hit = await searchSession(head, read(head.header.id), terms);
    if (hit !== null && hits.push(hit) >= limit) break;
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
    // A store that answers at once would otherwise leave nobody else a turn.
    if (entry.seq % TURN_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
    const text = entryText(entry);
    if (text === "") continue;
    const found = terms.flatMap((term) => {
      const position = findTerm(text, term);
      if (position !== null) missing.delete(term);
      return position ?? [];
    });
    const [first] = found.sort((a, b) => a.index - b.index);
    if (first !== undefined && matches.length < MATCHES_MAX) matches.push(matchOf(entry, text, first));
    if (missing.size === 0 && matches.length === MATCHES_MAX) break;
  }
  return missing.size === 0 ? { head, matches } : null;
}
