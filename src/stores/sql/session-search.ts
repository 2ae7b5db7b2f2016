import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { listPosition } from "../../session/query.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import type { SearchHit } from "../../session/store.ts";
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
    const { index } = this.#parts;
    const found = terms.flatMap((term) => index.keyOf(term) ?? []);
    // What was said in deleted sessions cannot be read, so that there is nothing to be found in the index.
    const usable = query.deleted !== true && found.length > 0 && (await this.#catchUp());
    const keys = usable ? await this.#candidates(found) : null;
    const listed = keys === null ? query : { ...query, keys };
    const complete = usable && found.length === terms.length;
    const read = (sessionId: string): AsyncIterable<Entry> => this.#read(sessionId, complete ? found : null);
    return searchByScan(this.#heads(listed), read, terms, limit);
  }

  async *#heads(query: ListedQuery): AsyncGenerator<SessionHead> {
    let after: ListPosition | null = null;
    for (;;) {
      const heads: SessionHead[] = await this.#parts.listing.list(query, PAGE_ITEMS_MAX, after);
      yield* heads;
      const last = heads.at(-1);
      // Every page ends later in the listing than the one before, so a short page is the end.
      if (last === undefined || heads.length < PAGE_ITEMS_MAX) return;
      after = listPosition(last);
    }
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
  async *#read(sessionId: string, keys: readonly string[] | null): AsyncGenerator<Entry> {
    const { port, index } = this.#parts;
    const session = await port.load(sessionId);
    if (session === null) return;
    for (const segment of clipSegments(session.segments, 0, session.head.version)) {
      const parts = keys === null ? [segment] : index.partsIn(segment, keys);
      for await (const part of parts) yield* this.#entriesIn(session, part);
    }
  }

  async *#entriesIn(session: SqlSession, { start, end }: LogRange): AsyncGenerator<Entry> {
    const range = { after: start - 1, before: end, limit: end - start, reverse: false };
    for await (const page of readPages(this.#parts.port, session, range)) {
      for (const body of page) yield JSON.parse(body) as Entry;
      // A store that answers at once would otherwise leave nobody else a turn.
      if (page.length > 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
