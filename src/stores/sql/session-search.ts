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

/** An index of the sessions in which a text may occur. It stores no texts, so every hit is a candidate that must be read. */
export interface SearchIndex {
  /** Indexes what was appended since the last call, in batches. */
  catchUp(): Promise<void>;
  /** The key under which the index finds a term; null if the term can be found only by reading the sessions. */
  keyOf(term: SearchTerm): string | null;
  /** SQL for the `key` of sessions whose own entries, id, name or directory may contain a term. Bind the result of `keyOf` and a limit. */
  readonly owners: string;
}

/** The sessions of a query in which the terms may occur according to the index, in the order of a listing. */
export async function* candidatesFor(
  database: SqlDatabase,
  { index, listing }: { readonly index: SearchIndex; readonly listing: SqlListing },
  terms: readonly SearchTerm[],
  query: ListedQuery,
): AsyncGenerator<SessionHead> {
  // Entries of deleted sessions cannot be read, so the index is of no use for them.
  const keys = query.deleted === true ? null : await keysFor(database, index, terms);
  const listed = keys === null ? query : { ...query, keys };
  const list: SqlListing["list"] = (_query, limit, after) => listing.list(listed, limit, after);
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: SessionPage = await listPage({ list }, query, PAGE_ITEMS_MAX, cursor ? decodeCursor(cursor) : null);
    yield* page.items;
    cursor = page.next;
  }
}

/** The keys of sessions in which the rarest term may occur, also in inherited entries; null if the index cannot narrow the query. */
async function keysFor(
  database: SqlDatabase,
  index: SearchIndex,
  terms: readonly SearchTerm[],
): Promise<readonly number[] | null> {
  const found = terms.flatMap((term) => index.keyOf(term) ?? []);
  if (found.length === 0 || !(await isUpToDate(index))) return null;
  let rarest: ReadonlySet<number> | null = null;
  for (const [i, key] of found.entries()) {
    // A database in this process is synchronous: without a pause it would block the event loop.
    if (i > 0 && i % KEYS_AT_ONCE === 0) await nextSlice();
    const rows = await database.rows<{ key: number | string }>(index.owners, [key, CANDIDATES_MAX + 1]);
    const owners = new Set(rows.map((row) => Number(row.key)));
    // A term with too many candidates does not narrow the search.
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

/** Brings the index up to date. Returns false if the store cannot be written to now. */
async function isUpToDate(index: SearchIndex): Promise<boolean> {
  try {
    await index.catchUp();
    return true;
  } catch (error) {
    // A database that is full, locked or read-only can still be searched by reading its sessions.
    if (error instanceof SessionError) return false;
    throw error;
  }
}
