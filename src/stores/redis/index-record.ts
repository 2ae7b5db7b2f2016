import { type RunsIndex, runsIndexOf } from "../../session/log/open-runs.ts";
import { parentsOf } from "../../session/query.ts";
import type { SessionQuery } from "../../session/store.ts";
import { runsKindOf, RUNS_BITS, type RunsKind } from "../rows/runs-columns.ts";
import type { KeyNames } from "./key-names.ts";
import type { StoredSession } from "./stored-session.ts";

/** The record of a session in the index. */
export interface IndexRecord {
  readonly uid: string;
  readonly rev: number;
  readonly modifiedAt: string;
  readonly updatedAt: string;
  readonly status: string;
  /** Set if the session has open runs. */
  readonly runs?: RunsIndex;
  /** Empty for a live session. */
  readonly deletedAt: string;
  readonly user: string | null;
  readonly cwd: string | null;
  readonly parents: readonly string[];
  /** The session it was forked from. */
  readonly source: string | null;
}

/** A member of one sorted set of the index. */
export interface IndexMember {
  readonly key: string;
  readonly member: string;
}

const TIME_CHARACTERS = "2000-01-01T00:00:00.000Z".length;

/** Computes the record of a session. */
export function recordOf({ stamp: { uid, rev }, head, deletedAt }: StoredSession): IndexRecord {
  const { header, modifiedAt, updatedAt, status, openRuns } = head;
  const { userId: user, cwd, forkedFrom } = header;
  const runs = openRuns.length === 0 ? {} : { runs: runsIndexOf(openRuns) };
  const times = { modifiedAt, updatedAt, status, ...runs, deletedAt: deletedAt ?? "" };
  return { uid, rev, ...times, user, cwd, parents: parentsOf(head), source: forkedFrom?.sessionId ?? null };
}

/** A member of a set that is sorted by time, then by id. */
export function timedMember(time: string, id: string): string {
  return `${time} ${id}`;
}

/** The session id in a member of a sorted set. */
export function idOfMember(member: string): string {
  return member.slice(TIME_CHARACTERS + 1);
}

/** A member of the set that is sorted by due time; an empty time sorts first. */
function dueMember(due: string, id: string): string {
  return timedMember(due.padEnd(TIME_CHARACTERS), id);
}

/** The members of all sorted sets that a session is in. */
export function membersOf(names: KeyNames, id: string, record: IndexRecord): IndexMember[] {
  const { user, cwd, parents, source, status, modifiedAt, updatedAt, deletedAt, runs } = record;
  const members: IndexMember[] = [{ key: names.index("updated"), member: timedMember(updatedAt, id) }];
  const add = (key: string, member: string): void => void members.push({ key, member });
  const listed = timedMember(modifiedAt, id);
  if (deletedAt !== "") {
    add(names.index("deleted"), listed);
    add(names.index("deleted-at"), timedMember(deletedAt, id));
    return members;
  }
  add(names.index("all"), listed);
  add(names.index("status", status), listed);
  if (user !== null) {
    add(names.index("user", user), listed);
    add(names.index(`user-${status}`, user), listed);
  }
  if (cwd !== null) add(names.index("cwd", cwd), listed);
  for (const parent of parents) add(names.index("parent", parent), listed);
  if (source !== null) add(names.index("forks", source), id);
  if (status === "active" || status === "suspended") {
    add(names.index("idle"), timedMember(updatedAt, id));
    if (user !== null) add(names.index("open", user), id);
  }
  for (const part of Object.keys(RUNS_BITS) as RunsKind[]) {
    if (runs?.[part] !== true) continue;
    add(names.index(`runs-${part}`), listed);
    if (user !== null) add(names.index(`user-runs-${part}`, user), listed);
  }
  if (runs !== undefined && runs.due !== null) add(names.index("due"), dueMember(runs.due, id));
  return members;
}

/** The sorted set that answers a query, and whether it contains exactly the matching sessions. */
export function partFor(names: KeyNames, query: SessionQuery): { readonly key: string; readonly exact: boolean } {
  const { userId, cwd, parentId, runs, deleted } = query;
  const [status, ...others] = new Set(query.status === undefined ? [] : [query.status].flat());
  const one = others.length === 0 ? status : undefined;
  const filters = [userId, cwd, parentId, runs, query.dueBefore, status].filter((each) => each !== undefined).length;
  if (deleted === true) return { key: names.index("deleted"), exact: filters === 0 };
  if (runs !== undefined) {
    // The index does not know which sessions have a live lease.
    const part = runsKindOf(runs);
    const exact = part !== "started" && filters === (userId === undefined ? 1 : 2);
    if (userId === undefined) return { key: names.index(`runs-${part}`), exact };
    return { key: names.index(`user-runs-${part}`, userId), exact };
  }
  if (parentId !== undefined) return { key: names.index("parent", parentId), exact: filters === 1 };
  if (userId !== undefined && one !== undefined)
    return { key: names.index(`user-${one}`, userId), exact: filters === 2 };
  if (userId !== undefined) return { key: names.index("user", userId), exact: filters === 1 };
  if (cwd !== undefined) return { key: names.index("cwd", cwd), exact: filters === 1 };
  if (one !== undefined) return { key: names.index("status", one), exact: filters === 1 };
  return { key: names.index("all"), exact: filters === 0 };
}

/** Whether the record of a session matches a query. Ignores whether it has a live lease, which the index does not know. */
export function recordMatches(record: IndexRecord, query: SessionQuery): boolean {
  const { userId, cwd, status, parentId, runs, dueBefore, deleted } = query;
  if ((record.deletedAt !== "") !== (deleted === true)) return false;
  if (userId !== undefined && record.user !== userId) return false;
  if (cwd !== undefined && record.cwd !== cwd) return false;
  if (status !== undefined && !([status].flat() as readonly string[]).includes(record.status)) return false;
  if (runs !== undefined && record.runs?.[runsKindOf(runs)] !== true) return false;
  const due = record.runs?.due ?? null;
  if (dueBefore !== undefined && !(due !== null && due < dueBefore)) return false;
  return parentId === undefined || record.parents.includes(parentId);
}
