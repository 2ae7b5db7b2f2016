import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { entryText, findTerm, headTexts, matchOf, type SearchTerm } from "../../session/search.ts";
import type { SearchHit, SearchMatch, SessionQuery } from "../../session/store.ts";
import type { ListedSession, Listing } from "./listing.ts";
import type { SearchIndex } from "./search-index.ts";
import { readPages } from "../rows/read-pages.ts";
import { clipSegments, type Segment, segmentAt } from "../rows/segments.ts";
import type { LoadedSession } from "./session-log.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";
import type { SqlitePort } from "./sqlite-port.ts";
import { expressionOf } from "./trigrams.ts";

const MATCHES_MAX = 3;
const CANDIDATES_MAX = 20_000;
const PAGE_POSITIONS = 64;

type Query = Omit<SessionQuery, "limit" | "cursor">;

/** A term with the expression that finds it in the index, or null where only reading can tell. */
interface IndexedTerm {
  readonly term: SearchTerm;
  readonly expression: string | null;
}

/**
 * Finds sessions by what was said in them. The index says which sessions and which entries to look at; whether they
 * match is decided by the same functions that every store uses.
 */
export class SessionSearch {
  readonly #handle: SqliteHandle;
  readonly #port: SqlitePort;
  readonly #listing: Listing;
  readonly #index: SearchIndex;

  constructor(handle: SqliteHandle, parts: { port: SqlitePort; listing: Listing; index: SearchIndex }) {
    this.#handle = handle;
    this.#port = parts.port;
    this.#listing = parts.listing;
    this.#index = parts.index;
  }

  async search(terms: readonly SearchTerm[], query: Query, limit: number): Promise<SearchHit[]> {
    if (query.deleted === true) return this.#searchHeads(terms, query, limit);
    const usable = await this.#catchUp();
    const indexed = terms.map((term) => ({ term, expression: usable ? expressionOf(term) : null }));
    const hits: SearchHit[] = [];
    for (const listed of this.#candidates(indexed, query)) {
      const session = this.#port.log.loadVersion(listed);
      const hit = session === null ? null : await this.#searchSession(session, indexed);
      if (hit !== null && hits.push(hit) >= limit) break;
    }
    return hits;
  }

  /** The sessions of a query whose heads hold every term: all there is to search of deleted ones. */
  #searchHeads(terms: readonly SearchTerm[], query: Query, limit: number): SearchHit[] {
    const hits: SearchHit[] = [];
    for (const listed of this.#all(query)) {
      const head = this.#port.log.loadVersion(listed)?.head;
      if (head === undefined || missingIn(headTexts(head), terms).length > 0) continue;
      if (hits.push({ head, matches: [] }) >= limit) break;
    }
    return hits;
  }

  /** Whether the index is complete. */
  async #catchUp(): Promise<boolean> {
    try {
      await this.#index.catchUp();
      return true;
    } catch (error) {
      // A database that is full, locked or read-only can still be searched by reading.
      if (error instanceof SessionError) return false;
      throw error;
    }
  }

  /** The sessions to look at, newest first: those in which the rarest term may occur, or all of the query. */
  *#candidates(terms: readonly IndexedTerm[], query: Query): Generator<ListedSession> {
    let rarest: Set<number> | null = null;
    for (const { expression } of terms) {
      const owners = expression === null ? null : this.#index.ownersOf(expression, CANDIDATES_MAX);
      if (owners !== null && (rarest === null || owners.size < rarest.size)) rarest = owners;
    }
    if (rarest !== null) {
      yield* this.#listing.among(this.#withForks(rarest), query);
    } else {
      yield* this.#all(query);
    }
  }

  *#all(query: Query): Generator<ListedSession> {
    for (let after: ListedSession | null = null; ; ) {
      const page: ListedSession[] = this.#listing.page(query, PAGE_ITEMS_MAX, after);
      yield* page;
      after = page.at(-1) ?? null;
      // Every page ends later in the listing than the one before, so a short one is the last.
      if (after === null || page.length < PAGE_ITEMS_MAX) return;
    }
  }

  /** Some sessions, and all that take entries over from them. */
  #withForks(owners: ReadonlySet<number>): number[] {
    return this.#handle
      .prepare(
        `WITH RECURSIVE family (key) AS (
           SELECT value FROM json_each(?)
           UNION SELECT sessions.key FROM sessions JOIN family ON origin_key = family.key
         ) SELECT key FROM family`,
      )
      .all<{ key: number }>([JSON.stringify([...owners])])
      .map(({ key }) => key);
  }

  async #searchSession(session: LoadedSession, terms: readonly IndexedTerm[]): Promise<SearchHit | null> {
    const { head } = session;
    const expressions = terms.flatMap(({ expression }) => expression ?? []);
    if (expressions.length < terms.length) return this.#searchByReading(session, terms);
    const texts = headTexts(head);
    for (const { term, expression } of terms) {
      if (texts.some((text) => findTerm(text, term) !== null)) continue;
      if (this.#firstMatches(session, [term], expression as string, 1).length === 0) return null;
    }
    const any = expressions.map((expression) => `(${expression})`).join(" OR ");
    const all = terms.map(({ term }) => term);
    return { head, matches: this.#firstMatches(session, all, any, MATCHES_MAX) };
  }

  /** The first entries of a session that the index suggests and in which one of the terms does occur. */
  #firstMatches(
    session: LoadedSession,
    terms: readonly SearchTerm[],
    expression: string,
    limit: number,
  ): SearchMatch[] {
    const matches: SearchMatch[] = [];
    for (const seq of this.#positions(session, expression)) {
      const match = matchIn(this.#entryAt(session, seq), terms);
      if (match !== null && matches.push(match) >= limit) break;
    }
    return matches;
  }

  /** The entry at a position, or null when it was purged. */
  #entryAt({ segments }: LoadedSession, seq: number): Entry | null {
    const [body] = this.#port.page({ key: segmentAt(segments, seq).key, start: seq, end: seq + 1 }, 1, false);
    return body === undefined ? null : (JSON.parse(body) as Entry);
  }

  *#positions({ segments, head }: LoadedSession, expression: string): Generator<number> {
    for (const segment of clipSegments(segments, 0, head.version)) {
      let rest: Segment = segment;
      for (let full = true; full && rest.start < rest.end; ) {
        const positions = this.#index.positionsIn(rest, expression, PAGE_POSITIONS);
        yield* positions;
        full = positions.length === PAGE_POSITIONS;
        rest = { ...rest, start: (positions.at(-1) ?? rest.start) + 1 };
      }
    }
  }

  async #searchByReading(session: LoadedSession, terms: readonly IndexedTerm[]): Promise<SearchHit | null> {
    const { head } = session;
    const all = terms.map(({ term }) => term);
    const missing = new Set(missingIn(headTexts(head), all));
    const matches: SearchMatch[] = [];
    const range = { after: -1, before: head.version, limit: head.version, reverse: false };
    for await (const page of readPages(this.#port, session, range)) {
      for (const body of page) {
        const entry = JSON.parse(body) as Entry;
        const text = entryText(entry);
        if (text === "") continue;
        for (const term of missing) if (findTerm(text, term) !== null) missing.delete(term);
        const match = matches.length < MATCHES_MAX ? matchIn(entry, all) : null;
        if (match !== null) matches.push(match);
      }
      if (missing.size === 0 && matches.length === MATCHES_MAX) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return missing.size === 0 ? { head, matches } : null;
  }
}

function missingIn(texts: readonly string[], terms: readonly SearchTerm[]): SearchTerm[] {
  return terms.filter((term) => !texts.some((text) => findTerm(text, term) !== null));
}

/** The match to show for an entry: the first place where one of the terms occurs. */
function matchIn(entry: Entry | null, terms: readonly SearchTerm[]): SearchMatch | null {
  const text = entry === null ? "" : entryText(entry);
  if (entry === null || text === "") return null;
  const [first] = terms.flatMap((term) => findTerm(text, term) ?? []).sort((a, b) => a.index - b.index);
  return first === undefined ? null : matchOf(entry, text, first);
}
