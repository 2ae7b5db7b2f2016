import type { SessionHead } from "../../session/log/fold.ts";
import { entryText, findTerm, headTexts, matchOf, type SearchTerm } from "../../session/search.ts";
import type { SearchHit, SearchMatch, SessionQuery } from "../../session/store.ts";
import { readRange } from "./valid-arguments.ts";
import { type ScanSource, scanSessions } from "./session-scan.ts";

const MATCHES_MAX = 3;

/** The sessions of a query in which every term occurs, newest first, found by reading each of them. */
export async function searchByScan(
  source: ScanSource,
  terms: readonly SearchTerm[],
  query: SessionQuery,
  limit: number,
): Promise<SearchHit[]> {
  const hits: SearchHit[] = [];
  for await (const head of scanSessions(source, query)) {
    const hit = await searchSession(source, terms, head);
    if (hit !== null && hits.push(hit) >= limit) break;
  }
  return hits;
}

async function searchSession(
  source: ScanSource,
  terms: readonly SearchTerm[],
  head: SessionHead,
): Promise<SearchHit | null> {
  const texts = headTexts(head);
  const missing = new Set(terms.filter((term) => !texts.some((text) => findTerm(text, term) !== null)));
  const matches: SearchMatch[] = [];
  for await (const entry of source.read(head.header.id, readRange({}))) {
    const text = entryText(entry);
    if (text === "") continue;
    const found = terms.flatMap((term) => {
      const place = findTerm(text, term);
      if (place !== null) missing.delete(term);
      return place ?? [];
    });
    const [first] = found.sort((a, b) => a.index - b.index);
    if (first !== undefined && matches.length < MATCHES_MAX) matches.push(matchOf(entry, text, first));
    if (missing.size === 0 && matches.length === MATCHES_MAX) break;
  }
  return missing.size === 0 ? { head, matches } : null;
}
