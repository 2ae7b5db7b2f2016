import type { SessionQuery } from "../../session/store.ts";
import { kindOf, RUNS_BITS } from "../rows/runs-columns.ts";
import type { SqlDialect, SqlValue } from "./sql-database.ts";

/** Conditions on rows of `sessions`, and what is bound to them. */
export interface SessionFilter {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Which sessions, wherever they stand in a listing; `keys` are the only ones that come into question. */
export interface ListedQuery extends Omit<SessionQuery, "limit" | "cursor"> {
  readonly keys?: readonly number[];
}

/** What a query asks of a session's row; `held` says whether someone has the session now, where that is asked for. */
export function filterOf(
  { prefix, hasRuns, inKeys }: SqlDialect,
  query: ListedQuery,
  held?: () => SessionFilter,
): SessionFilter {
  const { userId, cwd, status, parentId, runs, dueBefore, deleted, keys } = query;
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
    const statuses = [...new Set([status].flat())].sort();
    add(`status IN (${statuses.map(() => "?").join(", ")})`, ...statuses);
  }
  if (parentId !== undefined)
    add(`key IN (SELECT session_key FROM ${prefix}session_parents WHERE parent_id = ?)`, parentId);
  if (runs !== undefined) add(hasRuns(RUNS_BITS[kindOf(runs)]));
  const holding = runs === "running" || runs === "interrupted" ? held?.() : undefined;
  if (holding !== undefined) add(`${runs === "running" ? "" : "NOT "}${holding.sql}`, ...holding.values);
  if (dueBefore !== undefined) add("runs_due < ?", dueBefore);
  if (keys !== undefined) add(`key ${inKeys}`, JSON.stringify(keys));
  return { sql: conditions.join(" AND "), values };
}
