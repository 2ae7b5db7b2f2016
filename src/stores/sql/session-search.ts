import { nextSlice } from "../../internal/long-work.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SearchTerm } from "../../session/search.ts";
import type { SessionPage } from "../../session/store.ts";
import { decodeCursor, listPage } from "../complete/list-page.ts";
import type { ListedQuery } from "./session-filter.ts";
import type { SqlDatabase } from "./sql-database.ts";
import type { SqlListing } from "./sql-driver.ts";

const CANDIDATES_MAX = 20_000;
const KEYS_AT_ONCE = 4;

/** Says in which sessions a text may be. It holds no texts itself, so that what it finds is only a candidate. */
export interface SearchIndex {
  /** Adds what was appended since the last time, a part at a time. */
  catchUp(): Promise<void>;
  /** What a term is found by; null for one that only reading can find. */
  keyOf(term: SearchTerm): string | null;
  /** A query for the `key` of sessions whose own entries or texts may contain a term; it takes what that is found by, and a limit. */
  readonly owners: string;
}

/** The sessions of a query in which terms may occur, as far as the index tells, in the order of a listing. */
export async function* candidatesFor(
  database: SqlDatabase,
  { index, listing }: { readonly index: SearchIndex; readonly listing: SqlListing },
  terms: readonly SearchTerm[],
  query: ListedQuery,
): AsyncGenerator<SessionHead> {
  // What was said in deleted sessions cannot be read, so that there is nothing to be found in the index.
  const keys = query.deleted === true ? null : await keysFor(database, index, terms);
  const listed = keys === null ? query : { ...query, keys };
  const list: SqlListing["list"] = (_query, limit, after) => listing.list(listed, limit, after);
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: SessionPage = await listPage({ list }, query, PAGE_ITEMS_MAX, cursor ? decodeCursor(cursor) : null);
    yield* page.items;
    cursor = page.next;
  }
}

/** The sessions in which the rarest term may occur, also as entries taken over; null for all of the query. */
async function keysFor(
  database: SqlDatabase,
  index: SearchIndex,
  terms: readonly SearchTerm[],
): Promise<readonly number[] | null> {
  const found = terms.flatMap((term) => index.keyOf(term) ?? []);
  if (found.length === 0 || !(await isComplete(index))) return null;
  let rarest: ReadonlySet<number> | null = null;
  for (const [i, key] of found.entries()) {
    // A database in this process answers at once, and would leave nobody else a turn.
    if (i > 0 && i % KEYS_AT_ONCE === 0) await nextSlice();
    const rows = await database.rows<{ key: number | string }>(index.owners, [key, CANDIDATES_MAX + 1]);
    const owners = new Set(rows.map((row) => Number(row.key)));
    // With too many, it would be no use to look at these first.
    if (rows.length <= CANDIDATES_MAX && (rarest === null || owners.size < rarest.size)) rarest = owners;
  }
  if (rarest === null) return null;
  const { prefix, inKeys } = database.dialect;
  const rows = await database.rows<{ key: number | string }>(
    `WITH RECURSIVE family (key) AS (
       SELECT key FROM ${prefix}sessions WHERE key ${inKeys}
       UNION SELECT sessions.key FROM ${prefix}sessions JOIN family ON origin_key = family.key
     ) SELECT key FROM family`,
    [JSON.stringify([...rarest])],
  );
  return rows.map(({ key }) => Number(key));
}

/** Whether the index has everything by now. */
async function isComplete(index: SearchIndex): Promise<boolean> {
  try {
    await index.catchUp();
    return true;
  } catch (error) {
    // A database that is full, locked or read-only can still be searched by reading.
    if (error instanceof SessionError) return false;
    throw error;
  }
}
