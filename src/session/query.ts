import type { SessionHead } from "./log/fold.ts";
import { matchesRuns } from "./log/open-runs.ts";
import type { SessionQuery } from "./store.ts";
import type { ListPosition } from "./store-driver.ts";

/**
 * Whether a session matches a query. The store itself handles paging and `deleted`. `isHeld` returns whether a process holds the session
 * now.
 */
export function matchesQuery(head: SessionHead, query: SessionQuery, isHeld: () => boolean = () => false): boolean {
  const { header } = head;
  if (query.userId !== undefined && header.userId !== query.userId) return false;
  if (query.cwd !== undefined && header.cwd !== query.cwd) return false;
  if (query.status !== undefined && ![query.status].flat().includes(head.status)) return false;
  if (query.parentId !== undefined && !parentsOf(head).includes(query.parentId)) return false;
  return matchesRuns(head.openRuns, query, isHeld);
}

/** The sessions from which this one was derived, without duplicates. */
export function parentsOf(head: Pick<SessionHead, "header">): string[] {
  const { lineage, forkedFrom } = head.header;
  return [...new Set([...lineage.parents, ...(forkedFrom === null ? [] : [forkedFrom.sessionId])])];
}

/** The order of a listing: the latest message first; equal times by id, so that the order is total. */
export function compareForListing(a: ListPosition, b: ListPosition): number {
  if (a.modifiedAt !== b.modifiedAt) return a.modifiedAt < b.modifiedAt ? 1 : -1;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}

/** The position of a session in a listing. */
export function listPosition(head: SessionHead): ListPosition {
  return { modifiedAt: head.modifiedAt, id: head.header.id };
}

/** One page of a listing: the first `limit` of the sessions that follow a position. */
export function pageOfHeads(heads: readonly SessionHead[], limit: number, after: ListPosition | null): SessionHead[] {
  const placed = heads.map((head) => ({ ...listPosition(head), head }));
  const following = after === null ? placed : placed.filter((position) => compareForListing(position, after) > 0);
  return following
    .sort(compareForListing)
    .slice(0, limit)
    .map(({ head }) => head);
}

/** Whether a session is active or suspended. */
export function isOpen({ status }: SessionHead): boolean {
  return status === "active" || status === "suspended";
}

/** The open sessions among these that were not appended to since a given time, least recent first, ties by id. */
export function idleSince(heads: readonly SessionHead[], before: string): SessionHead[] {
  const idle = heads.filter((head) => isOpen(head) && head.updatedAt < before);
  return idle.sort((a, b) => {
    const [left, right] = a.updatedAt === b.updatedAt ? [a.header.id, b.header.id] : [a.updatedAt, b.updatedAt];
    return left < right ? -1 : 1;
  });
}
