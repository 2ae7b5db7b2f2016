import type { SessionQuery } from "../../session/store.ts";
import { kindOf, RUNS_BITS, type RunsKind } from "../rows/runs-columns.ts";
import { leaseIsLive } from "./lease-columns.ts";
import type { SqlValue } from "./postgres-connection.ts";

/** Conditions on rows of `sessions`, and what is bound to them. */
export interface SessionFilter {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Which sessions, wherever they stand in a listing; `keys` are the only ones that come into question. */
export interface ListedQuery extends Omit<SessionQuery, "limit" | "cursor"> {
  readonly keys?: readonly number[];
}

/** What a query asks of a session's row. Its values are bound from `$1` on; `nowMs` is what time it is for leases. */
export function filterOf(schema: string, query: ListedQuery, nowMs: number | null = null): SessionFilter {
  const { userId, cwd, status, parentId, runs, dueBefore, deleted, keys } = query;
  // A purged session that forks build on is deleted and has no id.
  const conditions = [deleted === true ? "deleted_at IS NOT NULL AND id IS NOT NULL" : "deleted_at IS NULL"];
  const values: SqlValue[] = [];
  const bind = (value: SqlValue): string => `$${values.push(value)}`;
  if (userId !== undefined) conditions.push(`user_id = ${bind(userId)}`);
  if (cwd !== undefined) conditions.push(`cwd = ${bind(cwd)}`);
  if (status !== undefined) {
    const statuses = [...new Set([status].flat())].sort();
    conditions.push(`status IN (${statuses.map((each) => bind(each)).join(", ")})`);
  }
  if (parentId !== undefined) {
    conditions.push(`key IN (SELECT session_key FROM ${schema}.session_parents WHERE parent_id = ${bind(parentId)})`);
  }
  if (runs !== undefined) conditions.push(hasRuns(kindOf(runs)));
  if (runs === "running" || runs === "interrupted") {
    // One look for each session that has a run: a join might read the leases of all sessions.
    const held = `(SELECT ${leaseIsLive(bind(nowMs))} FROM ${schema}.heads AS lease WHERE lease.session_key = key)`;
    conditions.push(`${held} IS ${runs === "running" ? "" : "NOT "}TRUE`);
  }
  if (dueBefore !== undefined) conditions.push(`runs_due < ${bind(dueBefore)}`);
  if (keys !== undefined) conditions.push(`key = ANY (${bind(`{${keys.join(",")}}`)}::text::bigint[])`);
  return { sql: conditions.join(" AND "), values };
}

/** As the indexes say it. The values by name, as the database knows how many rows have each, and nothing of their bits. */
function hasRuns(kind: RunsKind): string {
  const values = [1, 2, 3, 4, 5, 6, 7].filter((value) => (value & RUNS_BITS[kind]) !== 0);
  return `runs IN (${values.join(", ")})`;
}
