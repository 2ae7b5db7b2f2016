import { z } from "zod";
import { programOf } from "../../../interop/formats/program-of.ts";
import type { SessionStatus } from "../../../session/log/entry.ts";
import { SessionCapacityError } from "../../../session/errors.ts";
import { parseSearch, type SearchTerm } from "../../../session/search.ts";
import type { SearchHit, SessionQuery } from "../../../session/store.ts";
import { headWeight } from "../../../stores/complete/head-weight.ts";
import { PAGE_CHARACTERS_MAX } from "../../../stores/complete/list-page.ts";
import type { SearchHitView, SearchView } from "../../wire.ts";
import { PatternSearch } from "./pattern-search.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, limit, named, queryList } from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { listedViews } from "./session-access.ts";
import { listedSession, program, status } from "./wire-schemas.ts";

const PATTERN_TIMEOUT_MS = 1000;
/** How many searches with a pattern may run concurrently; each has a thread. */
const PATTERNS_MAX = 4;
const PATTERNS_PER_USER = 2;
const LIMIT_DEFAULT = 100;

const searchHit = named<SearchHitView>(
  "SearchHit",
  z.object({
    head: listedSession,
    matches: z.array(z.object({ entryId: z.string(), seq: z.int(), text: z.string() })),
  }),
);
const searchView = named<SearchView>("SearchResults", z.object({ items: z.array(searchHit) }));

/** A parsed search. */
interface SearchRequest {
  readonly terms: readonly SearchTerm[];
  readonly query: SessionQuery;
  readonly limit: number;
}

/** Adds the route that searches sessions by their content. */
export function mountSearch(app: ServerApp, services: ServerServices): void {
  const patterns: string[] = [];
  route(app, {
    method: "get",
    path: "/api/search",
    operationId: "searchSessions",
    summary: 'Sessions in which every term occurs: words, "exact phrases", re:<pattern>. Newest first.',
    query: z.strictObject({
      q: z.string().min(1).max(1000),
      userId: id.optional(),
      cwd: z.string().min(1).optional(),
      status: queryList(status).optional(),
      program: program.optional(),
      limit: limit.optional(),
    }),
    answers: { 200: { description: "The sessions found.", schema: searchView } },
    async handle({ query: { q, limit: most = LIMIT_DEFAULT, status: wanted, program: from, ...filter }, caller }) {
      const isFrom = ({ head }: SearchHit) => from === undefined || programOf(head) === from;
      const terms = parseSearch(q);
      const { userId } = filter;
      if (!caller.admin && userId !== undefined && userId !== caller.userId) return answer({ items: [] });
      const query = {
        ...filter,
        ...(caller.admin ? {} : { userId: caller.userId }),
        // An expiry that is due may not be recorded yet; those sessions are filtered afterwards.
        ...(wanted === undefined || wanted.includes("expired") ? {} : { status: wanted }),
      } as SessionQuery;
      const request = { terms, query, limit: most };
      if (!terms.some(({ type }) => type === "pattern")) {
        const hits = await services.store.search(q, { ...query, limit: most });
        return answer({ items: await withCurrentStatus(services, hits.filter(isFrom), caller, wanted) });
      }
      const own = patterns.filter((each) => each === caller.userId).length;
      if (own >= PATTERNS_PER_USER || patterns.length >= PATTERNS_MAX) {
        const max = own >= PATTERNS_PER_USER ? PATTERNS_PER_USER : PATTERNS_MAX;
        throw new SessionCapacityError("concurrent searches with a pattern", max);
      }
      patterns.push(caller.userId);
      try {
        const hits = await searchPattern(services, request);
        return answer({ items: await withCurrentStatus(services, hits.filter(isFrom), caller, wanted) });
      } finally {
        patterns.splice(patterns.indexOf(caller.userId), 1);
      }
    },
  });
}

/** The sessions with their current status: an expiry that is due may not be recorded yet. */
async function withCurrentStatus(
  services: ServerServices,
  hits: readonly SearchHit[],
  caller: Caller,
  wanted: readonly SessionStatus[] | undefined,
): Promise<SearchHitView[]> {
  const seen: SearchHitView[] = [];
  for (const { head: found, matches } of hits) {
    const head = await services.manager.head(found.header.id, { actor: caller });
    if (head === null || (wanted !== undefined && !wanted.includes(head.status))) continue;
    for (const listed of await listedViews(services, [head])) seen.push({ head: listed, matches });
  }
  return seen;
}

async function searchPattern(
  { store }: ServerServices,
  { terms, query, limit: most }: SearchRequest,
): Promise<SearchHit[]> {
  const [pattern] = terms.flatMap((term) => (term.type === "pattern" ? [term.pattern] : []));
  await using search = new PatternSearch(pattern as RegExp, PATTERN_TIMEOUT_MS);
  const hits: SearchHit[] = [];
  let characters = 0;
  for await (const head of candidates()) {
    const hit = await search.searchSession(store, head);
    if (hit === null) continue;
    characters += headWeight(head);
    if (hits.push(hit) >= most || characters > PAGE_CHARACTERS_MAX) break;
  }
  return hits;

  /** The sessions that contain the words, or all sessions. */
  async function* candidates(): AsyncGenerator<SearchHit["head"]> {
    const words = terms.flatMap((term) => (term.type === "text" ? [`"${term.text}"`] : []));
    if (words.length > 0) {
      for (const { head } of await store.search(words.join(" "), { ...query, limit: 1000 })) yield head;
      return;
    }
    for (let cursor: string | null = null; ; ) {
      const page: Awaited<ReturnType<typeof store.list>> = await store.list({
        ...query,
        ...(cursor === null ? {} : { cursor }),
      });
      yield* page.items;
      if (page.next === null) return;
      cursor = page.next;
    }
  }
}
