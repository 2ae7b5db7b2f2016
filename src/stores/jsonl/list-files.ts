import type { SessionHead } from "../../session/fold.ts";
import { compareForListing, listPosition, matchesQuery } from "../../session/query.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import type { DamagedSession, SessionPage, SessionQuery } from "../../session/store.ts";
import { readLease } from "./lease-file.ts";
import type { LogFile } from "./log-file.ts";
import type { SessionFiles } from "./session-files.ts";

/** One page of the sessions that a query asks for. Files that cannot be read are on the first page. */
export async function listFiles(
  files: SessionFiles,
  query: SessionQuery,
  limit: number,
  after: ListPosition | null,
): Promise<Omit<SessionPage, "next">> {
  const { heads, damaged } = await look(files, query);
  const placed = heads.map((head) => ({ ...listPosition(head), head }));
  const matching = after === null ? placed : placed.filter((place) => compareForListing(place, after) > 0);
  matching.sort(compareForListing);
  // Of a file that cannot be read nobody knows whose it is, so it is not shown to one user among many.
  const shown = after === null && query.userId === undefined ? damaged : [];
  return { items: matching.slice(0, limit).map(({ head }) => head), damaged: shown };
}

/** How many sessions a query asks for. */
export async function countFiles(files: SessionFiles, query: SessionQuery): Promise<number> {
  return (await look(files, query)).heads.length;
}

/** The active and suspended sessions that were last written before a time, the longest idle first. */
export async function listIdle(files: SessionFiles, before: string, limit: number): Promise<SessionHead[]> {
  const { heads } = await look(files, { status: ["active", "suspended"] });
  const idle = heads.filter(({ updatedAt }) => updatedAt < before);
  idle.sort((a, b) => compare(a.updatedAt, b.updatedAt) || compare(a.header.id, b.header.id));
  return idle.slice(0, limit);
}

async function look(
  files: SessionFiles,
  query: SessionQuery,
): Promise<{ heads: SessionHead[]; damaged: DamagedSession[] }> {
  const listed = await (query.deleted === true ? files.trash : files.live).list();
  const running = query.runs === "running";
  // Who has a session is asked below, and only of those that are left.
  const asked = { ...query, isHeld: () => running };
  const heads: SessionHead[] = [];
  for (const { head, file } of listed) {
    if (head === null || !matchesQuery(head, asked)) continue;
    if ((running || query.runs === "interrupted") && (await isHeld(files, file, head)) !== running) continue;
    heads.push(head);
  }
  return { heads, damaged: listed.flatMap(({ damaged }) => damaged ?? []) };
}

async function isHeld(files: SessionFiles, { places }: LogFile, { header }: SessionHead): Promise<boolean> {
  return (await readLease(places.lease, header.id, files.now())) !== null;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
