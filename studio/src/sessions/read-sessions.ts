import type { Client, SearchHitView, ListedSession } from "skein/client";
import { isShown, patternProblem, queryOf, type SessionFilter } from "./session-filter.ts";

/** A row of the list: a session, and where a search found something in it. */
export interface SessionRow {
  readonly session: ListedSession;
  readonly matches: SearchHitView["matches"];
}

/** The rows that were asked for, and whether there are more. */
export interface SessionRows {
  readonly rows: readonly SessionRow[];
  readonly more: boolean;
  /** How many sessions the server had to send for it. */
  readonly read: number;
}

/** The most sessions that one page of the server's listing may have. */
const PAGE_MAX = 1000;

/** How many sessions are looked through at once for those of a kind that the server cannot ask its store for. */
const SIFTED_PAGE = 500;

/** The most pages that are looked through. */
const PAGES_MAX = 20;

/** The first so many sessions that a filter lets through, those with the latest message first. */
export async function readSessions(
  client: Client,
  filter: SessionFilter,
  wanted: number,
  signal: AbortSignal,
): Promise<SessionRows> {
  return filter.search.trim() === "" || filter.show === "deleted"
    ? listSessions(client, filter, wanted, signal)
    : searchSessions(client, filter, wanted, signal);
}

async function searchSessions(
  client: Client,
  filter: SessionFilter,
  wanted: number,
  signal: AbortSignal,
): Promise<SessionRows> {
  const problem = patternProblem(filter.search);
  if (problem !== null) throw new Error(problem);
  const limit = Math.min(wanted + 1, PAGE_MAX);
  const { items } = await client.search(filter.search.trim(), { ...queryOf(filter), limit, signal });
  const rows = items
    .filter(({ head }) => isShown(head, filter.show))
    .map(({ head, matches }) => ({ session: head, matches }));
  return { rows: rows.slice(0, wanted), more: items.length > wanted && wanted < PAGE_MAX, read: items.length };
}

async function listSessions(
  client: Client,
  filter: SessionFilter,
  wanted: number,
  signal: AbortSignal,
): Promise<SessionRows> {
  const rows: SessionRow[] = [];
  const query = { ...queryOf(filter), ...(filter.show === "deleted" ? { deleted: true } : {}) };
  const sifted = filter.show === "running" || filter.show === "interrupted";
  let cursor: string | null = null;
  let read = 0;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const limit = sifted ? SIFTED_PAGE : Math.min(wanted - rows.length, PAGE_MAX);
    const page: Awaited<ReturnType<typeof client.sessions.list>> = await client.sessions.list(
      { ...query, limit, ...(cursor === null ? {} : { cursor }) },
      { signal },
    );
    for (const session of page.items) if (isShown(session, filter.show)) rows.push({ session, matches: [] });
    read += page.items.length;
    cursor = page.next;
    if (cursor === null || rows.length >= wanted) break;
  }
  return { rows, more: cursor !== null, read };
}
