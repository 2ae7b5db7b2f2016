import type { Client, SearchHitView, ListedSession } from "skein/client";
import { isShown, patternProblem, queryOf, runsOf, type SessionFilter } from "./session-filter.ts";

/** A row of the list: a session, and the matches of a search in it. */
export interface SessionRow {
  readonly session: ListedSession;
  readonly matches: SearchHitView["matches"];
}

/** The requested rows, and whether there are more. */
export interface SessionRows {
  readonly rows: readonly SessionRow[];
  readonly more: boolean;
  /** How many sessions the server returned for it. */
  readonly read: number;
}

/** The maximum number of sessions on a page of the server's list. */
const PAGE_MAX = 1000;

/** The first sessions that match a filter, latest message first. */
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
  const runs = runsOf(filter.show);
  const query = {
    ...queryOf(filter),
    ...(filter.show === "deleted" ? { deleted: true } : {}),
    ...(runs === null ? {} : { runs }),
  };
  let cursor: string | null = null;
  do {
    const limit = Math.min(wanted - rows.length, PAGE_MAX);
    const page: Awaited<ReturnType<typeof client.sessions.list>> = await client.sessions.list(
      { ...query, limit, ...(cursor === null ? {} : { cursor }) },
      { signal },
    );
    rows.push(...page.items.map((session) => ({ session, matches: [] })));
    cursor = page.next;
  } while (cursor !== null && rows.length < wanted);
  return { rows, more: cursor !== null, read: rows.length };
}
