import { SessionError } from "../session/errors.ts";
import type { Entry } from "../session/log/entry.ts";
import { entryText, findTerm, parseSearch, type SearchTerm } from "../session/search.ts";
import type { SearchHit } from "../session/store.ts";
import { type Answer, composeAnswer, PREFACE } from "./answer.ts";
import { matchesFilter, originOf, type SessionFilter, type SessionScope } from "./session-scope.ts";

/** How many sessions an answer has. */
const PAGE = 8;
const QUOTES_PER_SESSION = 2;
/** The most hits that a store returns. */
const HITS_MAX = 1000;
/** By how much more hits are read if too many of the first ones were filtered out. */
const GROWTH = 8;
const CHARACTERS_BEFORE = 200;
const CHARACTERS_AFTER = 400;

/** The arguments of `search_sessions`. */
export interface SearchArguments extends SessionFilter {
  readonly words: string;
  readonly offset?: number | undefined;
}

/** Sessions that contain all words, with the text around their first matches. */
export async function searchSessions(scope: SessionScope, args: SearchArguments): Promise<string> {
  const terms = parseSearch(args.words);
  if (terms.some(({ type }) => type === "pattern")) {
    throw new SessionError("INVALID_QUERY", 'This search takes words and "exact phrases", and no pattern after re:.');
  }
  const { offset = 0 } = args;
  const hits = await findHits(scope, args, offset + PAGE + 1);
  const found: { readonly hit: SearchHit; readonly entries: readonly Entry[] }[] = [];
  for (const hit of hits.slice(offset, offset + PAGE)) found.push({ hit, entries: await entriesOf(scope, hit) });
  return composeAnswer((answer) => {
    answer.add(PREFACE);
    let shown = 0;
    for (const { hit, entries } of found) {
      if (!answer.add(hitLines(answer, hit, entries, terms))) break;
      shown++;
    }
    if (shown === 0) {
      return answer.end(offset === 0 ? nothingFound(scope) : "No more sessions match.");
    }
    const next = offset + shown;
    const more = next < hits.length ? ` Call search_sessions with "offset": ${next} for more sessions.` : "";
    return answer.end(`Call read_session with "session" and "around" to read the turns around an entry.${more}`);
  });
}

/** The first hits in scope that match the filter, at least `wanted` if there are as many. */
async function findHits(scope: SessionScope, args: SearchArguments, wanted: number): Promise<readonly SearchHit[]> {
  const query = scope.queryFor(args);
  if (query === null) return [];
  const { store } = scope.manager;
  for (let limit = Math.min(wanted, HITS_MAX); ; limit = Math.min(limit * GROWTH, HITS_MAX)) {
    const hits = await store.search(args.words, { ...query, limit });
    const kept = hits.filter(({ head }) => scope.includes(head) && matchesFilter(head, args));
    if (kept.length >= wanted || hits.length < limit || limit === HITS_MAX) return kept;
  }
}

async function entriesOf({ manager }: SessionScope, { head, matches }: SearchHit): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const { entryId } of matches.slice(0, QUOTES_PER_SESSION)) {
    const entry = await manager.store.getEntry(head.header.id, entryId);
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

function hitLines(
  answer: Answer,
  { head }: SearchHit,
  entries: readonly Entry[],
  terms: readonly SearchTerm[],
): string {
  const lines = ["", `Session ${originOf(answer, head)}`];
  for (const entry of entries) {
    const text = entryText(entry);
    const lower = text.toLowerCase();
    const at = Math.min(...terms.map((term) => findTerm(text, term, lower)?.index ?? Number.POSITIVE_INFINITY));
    const index = Number.isFinite(at) ? at : 0;
    const role = entry.type === "message" ? entry.message.role : "note";
    lines.push(`Entry ${answer.value(entry.id, 512)}, ${role}, ${entry.timestamp}:`);
    lines.push(answer.quote(text, Math.max(0, index - CHARACTERS_BEFORE), index + CHARACTERS_AFTER));
  }
  if (entries.length === 0) lines.push("Its id, name or directory matches.");
  return lines.join("\n");
}

function nothingFound({ directory }: SessionScope): string {
  const where = directory === null ? "" : " of this directory; sessions of other directories are not shown here";
  return `No session matches${where}. Try fewer or other words.`;
}
