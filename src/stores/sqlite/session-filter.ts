import type { SessionQuery } from "../../session/store.ts";
import type { SqlValue } from "./sqlite-handle.ts";

/** Conditions on rows of `sessions`, and what is bound to them. */
export interface SessionFilter {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** What a query asks of a session's row. */
export function filterOf(query: Omit<SessionQuery, "limit" | "cursor">): SessionFilter {
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
