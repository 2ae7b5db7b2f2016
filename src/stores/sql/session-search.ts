import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition, ReadRange } from "../../session/store-driver.ts";
import type { SearchHit, SessionQuery } from "../../session/store.ts";
import { searchByScan } from "../complete/search-by-scan.ts";
import type { Reply } from "../rows/asking.ts";
import { readPages } from "../rows/read-pages.ts";
import { clipSegments, type LogRange, type Segment } from "../rows/segments.ts";
import type { ListedQuery } from "./session-filter.ts";
import type { SqlDatabase } from "./sql-database.ts";
import type { SqlParts } from "./sql-driver.ts";
import type { SqlSession } from "./sql-eraser.ts";

const CANDIDATES_MAX = 20_000;

/** Says where a text may be. It holds no texts itself, so that what it finds is only a candidate. */
export interface SearchIndex {
  /** Adds what was appended since the last time, a part at a time. */
  catchUp(): Promise<void>;
  /** What a term is found by; null for one that only reading can find. */
  keyOf(term: SearchTerm): string | null;
  /** The sessions whose own entries or texts may contain a term; null when there are too many to be useful. */
  ownersOf(key: string, limit: number): Reply<ReadonlySet<number> | null>;
  /** The parts of a part of a log in which one of some terms may occur, in order. */
  partsIn(part: Segment, keys: readonly string[]): AsyncIterable<LogRange>;
}

type SearchParts = Pick<SqlParts<SqlSession>, "port" | "listing"> & { readonly index: SearchIndex };

/**
 * Finds sessions by what was said in them. The index says which sessions and which entries to look at; whether they
 * match is decided by the same functions that every store uses.
 */
export class SessionSearch {
  readonly #database: SqlDatabase;
  readonly #parts: SearchParts;

  constructor(database: SqlDatabase, parts: SearchParts) {
    this.#database = database;
    this.#parts = parts;
  }

  async search(terms: readonly SearchTerm[], query: ListedQuery, limit: number): Promise<SearchHit[]> {
    const { index, listing } = this.#parts;
    const found = terms.flatMap((term) => index.keyOf(term) ?? []);
    // What was said in deleted sessions cannot be read, so that there is nothing to be found in the index.
    const usable = query.deleted !== true && found.length > 0 && (await this.#catchUp());
    const keys = usable ? await this.#candidates(found) : null;
    const listed = keys === null ? query : { ...query, keys };
    const complete = usable && found.length === terms.length;
    const source = {
      list: async (_: SessionQuery, size: number, after: ListPosition | null) => ({
        items: await listing.list(listed, size, after),
        damaged: [],
      }),
      read: (sessionId: string, range: ReadRange) => this.#read(sessionId, range, complete ? found : null),
    };
    return searchByScan(source, terms, query, limit);
  }

  /** Whether the index is complete. */
  async #catchUp(): Promise<boolean> {
    try {
      await this.#parts.index.catchUp();
      return true;
    } catch (error) {
      // A database that is full, locked or read-only can still be searched by reading.
      if (error instanceof SessionError) return false;
      throw error;
    }
  }

  /** The sessions in which the rarest term may occur, also as entries taken over; null for all of the query. */
  async #candidates(found: readonly string[]): Promise<readonly number[] | null> {
    let rarest: ReadonlySet<number> | null = null;
    for (const key of found) {
      const owners = await this.#parts.index.ownersOf(key, CANDIDATES_MAX);
      if (owners !== null && (rarest === null || owners.size < rarest.size)) rarest = owners;
    }
    if (rarest === null) return null;
    const { prefix, inKeys } = this.#database.dialect;
    const rows = await this.#database.rows<{ key: number | string }>(
      `WITH RECURSIVE family (key) AS (
         SELECT key FROM ${prefix}sessions WHERE key ${inKeys}
         UNION SELECT sessions.key FROM ${prefix}sessions JOIN family ON origin_key = family.key
       ) SELECT key FROM family`,
      [JSON.stringify([...rarest])],
    );
    return rows.map(({ key }) => Number(key));
  }

  /** The entries of a session, or only those near which one of some terms may occur: the others match nothing. */
  async *#read(sessionId: string, range: ReadRange, keys: readonly string[] | null): AsyncGenerator<Entry> {
    const { port, index } = this.#parts;
    const session = await port.load(sessionId, undefined);
    if (session === null) return;
    if (keys === null) {
      yield* this.#entriesIn(session, range);
      return;
    }
    for (const segment of clipSegments(session.segments, 0, session.head.version)) {
      for await (const { start, end } of index.partsIn(segment, keys))
        yield* this.#entriesIn(session, { after: start - 1, before: end, limit: end - start, reverse: false });
    }
  }

  async *#entriesIn(session: SqlSession, range: ReadRange): AsyncGenerator<Entry> {
    for await (const page of readPages(this.#parts.port, session, range)) {
      for (const body of page) yield JSON.parse(body) as Entry;
      // A store that answers at once would otherwise leave nobody else a turn.
      if (page.length > 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
