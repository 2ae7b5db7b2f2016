import type { RunsWord } from "../../session/open-runs.ts";
import type { SessionQuery } from "../../session/store.ts";
import { kindOf, RUNS_BITS } from "../rows/runs-columns.ts";
import type { LeaseRows } from "./lease-rows.ts";
import type { SqlValue } from "./sqlite-handle.ts";

/** Conditions on rows of `sessions`, and what is bound to them. */
export interface SessionFilter {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Which sessions, wherever they stand in a listing. */
export type ListedQuery = Omit<SessionQuery, "limit" | "cursor">;

/** What a query asks of a session's row, its open runs left out. */
export function filterOf(query: Omit<ListedQuery, "runs" | "dueBefore">): SessionFilter {
  const { userId, cwd, status, parentId, deleted } = query;
  // A purged session that forks build on is deleted and has no id.
  const conditions = [deleted === true ? "deleted_at IS NOT NULL AND sessions.id IS NOT NULL" : "deleted_at IS NULL"];
  const values: SqlValue[] = [];
  const add = (condition: string, ...bound: readonly SqlValue[]): void => {
    conditions.push(condition);
    values.push(...bound);
  };
  if (userId !== undefined) add("user_id = ?", userId);
  if (cwd !== undefined) add("cwd = ?", cwd);
  if (status !== undefined) {
    const statuses = [...new Set([status].flat())];
    add(`status IN (${statuses.map(() => "?").join(", ")})`, ...statuses);
  }
  if (parentId !== undefined) add("key IN (SELECT session_key FROM session_parents WHERE parent_id = ?)", parentId);
  return { sql: conditions.join(" AND "), values };
}

/** The same with what it asks of open runs; who has a session now is told by the leases. */
export function filterWithRuns({ runs, dueBefore, ...query }: ListedQuery, leases: LeaseRows): SessionFilter {
  const filters = [filterOf(query)];
  if (runs !== undefined) filters.push({ sql: hasRuns(runs), values: [] });
  if (runs === "running") filters.push(leases.held());
  if (runs === "interrupted") {
    const { sql, values } = leases.held();
    filters.push({ sql: `NOT ${sql}`, values });
  }
  if (dueBefore !== undefined) filters.push({ sql: "runs_due < ?", values: [dueBefore] });
  return {
    sql: filters.map(({ sql }) => sql).join(" AND "),
    values: filters.flatMap(({ values }) => values),
  };
}

/**
 * The index that finds sessions by their runs, as SQL after the name of their table, where a query asks for them. SQLite
 * does not know how few have any, and would rather go through all sessions in the order of the listing.
 */
export function indexOfRuns({ runs, dueBefore, userId, parentId, deleted }: ListedQuery): string {
  if (deleted === true || parentId !== undefined) return "";
  if (dueBefore !== undefined) return "INDEXED BY sessions_due";
  if (runs === undefined) return "";
  return `INDEXED BY sessions_${kindOf(runs)}${userId === undefined ? "" : "_by_user"}`;
}

/** As the indexes say it, since SQLite compares their conditions word by word. */
function hasRuns(runs: RunsWord): string {
  return `runs & ${RUNS_BITS[kindOf(runs)]}`;
}
