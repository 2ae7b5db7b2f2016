import type { Entry } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import type { SearchHit, SessionQuery } from "../../session/store.ts";
import { searchByScan } from "../complete/search-by-scan.ts";
import { readPages } from "../rows/read-pages.ts";
import { clipSegments } from "../rows/segments.ts";
import type { Listing } from "./listing.ts";
import type { PostgresHandle } from "./postgres-handle.ts";
import type { PostgresPort } from "./postgres-port.ts";
import type { SearchIndex } from "./search-index.ts";
import type { LoadedSession } from "./session-row.ts";
import { trigramsOf } from "./trigrams.ts";

const CANDIDATES_MAX = 20_000;

/**
 * Finds sessions by what was said in them. The index says which sessions and which entries to look at; whether they
 * match is decided by the same functions that every store uses.
 */
export class SessionSearch {
  readonly #handle: PostgresHandle;
  readonly #port: PostgresPort;
  readonly #listing: Listing;
  readonly #index: SearchIndex;

  constructor(handle: PostgresHandle, parts: { port: PostgresPort; listing: Listing; index: SearchIndex }) {
    this.#handle = handle;
    this.#port = parts.port;
    this.#listing = parts.listing;
    this.#index = parts.index;
  }

  async search(terms: readonly SearchTerm[], query: SessionQuery, limit: number): Promise<SearchHit[]> {
    const trigrams = terms.flatMap((term) => trigramsOf(term) ?? []);
    // What was said in deleted sessions cannot be read, so that there is nothing to be found in the index.
    const usable = query.deleted !== true && trigrams.length > 0 && (await this.#catchUp());
    const keys = usable ? await this.#candidates(trigrams) : null;
    const listed = keys === null ? query : { ...query, keys };
    const complete = usable && trigrams.length === terms.length;
    const source = {
      list: async (_: SessionQuery, size: number, after: Parameters<Listing["list"]>[2]) => ({
        items: await this.#listing.list(listed, size, after),
        damaged: [],
      }),
      read: (sessionId: string, range: ReadRange) => this.#read(sessionId, range, complete ? trigrams : null),
    };
    return searchByScan(source, terms, query, limit);
  }

  /** Whether the index is complete. */
  async #catchUp(): Promise<boolean> {
    try {
      await this.#index.catchUp();
      return true;
    } catch (error) {
      // A database that is full or read-only can still be searched by reading.
      if (error instanceof SessionError) return false;
      throw error;
    }
  }

  /** The sessions in which the rarest term may occur, also as entries taken over; null for all of the query. */
  async #candidates(trigrams: readonly string[]): Promise<number[] | null> {
    let rarest: Set<number> | null = null;
    for (const each of trigrams) {
      const owners = await this.#index.ownersOf(each, CANDIDATES_MAX);
      if (owners !== null && (rarest === null || owners.size < rarest.size)) rarest = owners;
    }
    return rarest === null ? null : this.#withForks(rarest);
  }

  async #withForks(owners: ReadonlySet<number>): Promise<number[]> {
    const { schema } = this.#handle;
    const rows = await this.#handle.read<{ key: string }>(
      `WITH RECURSIVE family (key) AS (
         SELECT unnest($1::text::bigint[])
         UNION SELECT sessions.key FROM ${schema}.sessions JOIN family ON origin_key = family.key
       ) SELECT key FROM family`,
      [`{${[...owners].join(",")}}`],
    );
    return rows.map(({ key }) => Number(key));
  }

  /** The entries of a session, or only those near which one of some terms may occur: the others match nothing. */
  async *#read(sessionId: string, range: ReadRange, trigrams: readonly string[] | null): AsyncGenerator<Entry> {
    const session = await this.#port.load(sessionId);
    if (session === null) return;
    if (trigrams === null) {
      yield* this.#entriesIn(session, range);
      return;
    }
    for (const segment of clipSegments(session.segments, 0, session.head.version)) {
      for (const { start, end } of await this.#index.partsIn(segment, trigrams)) {
        const part = { after: start - 1, before: end, limit: end - start, reverse: false };
        yield* this.#entriesIn(session, part);
      }
    }
  }

  async *#entriesIn(session: LoadedSession, range: ReadRange): AsyncGenerator<Entry> {
    for await (const page of readPages(this.#port, session, range))
      for (const body of page) yield JSON.parse(body) as Entry;
  }
}
