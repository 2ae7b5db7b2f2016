import type { SessionQuery } from "../../session/store.ts";
import { runsKindOf, RUNS_BITS } from "../rows/runs-columns.ts";
import type { SqlDialect, SqlValue } from "./sql-database.ts";

/** SQL conditions on rows of `sessions`, and the values bound to them. */
export interface SessionFilter {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** A query without the limit and the cursor of a page. With `keys`, only those sessions can match. */
export interface ListedQuery extends Omit<SessionQuery, "limit" | "cursor"> {
  readonly keys?: readonly number[];
}

/** Translates a query to SQL. `held` gives the condition that a session has a live lease; it is called only if the query needs it. */
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
  if (runs !== undefined) add(hasRuns(RUNS_BITS[runsKindOf(runs)]));
  const holding = runs === "running" || runs === "interrupted" ? held?.() : undefined;
  if (holding !== undefined) add(`${runs === "running" ? "" : "NOT "}${holding.sql}`, ...holding.values);
  if (dueBefore !== undefined) add("runs_due < ?", dueBefore);
  if (keys !== undefined) add(`key ${inKeys}`, JSON.stringify(keys));
  return { sql: conditions.join(" AND "), values };
}
