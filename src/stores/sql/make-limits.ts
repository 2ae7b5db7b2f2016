import { type Limit, tooMany } from "../complete/session-limits.ts";
import { type Asking, ask } from "../rows/asking.ts";
import type { SqlDialect, SqlRunner } from "./sql-database.ts";

/** Call it in the transaction that makes a session. @throws {SessionCapacityError} when there are as many as there may be. */
export function* checkLimits(
  { prefix, lockName }: SqlDialect,
  inside: SqlRunner,
  limits: readonly Limit[],
): Asking<void> {
  const forks = `${prefix}session_parents JOIN ${prefix}sessions ON key = session_key
    WHERE parent_id = ? AND forked AND deleted_at IS NULL`;
  const open = `${prefix}sessions WHERE user_id = ? AND deleted_at IS NULL AND status IN ('active', 'suspended')`;
  for (const limit of limits) {
    const { part, name, max } = limit;
    // Two that make sessions for one user at once must not both find room for the last one.
    if (part === "open" && lockName !== null) yield* ask(inside.rows(lockName, [`skein ${prefix} ${name}`]));
    const sql = `SELECT count(*) AS count FROM ${part === "open" ? open : forks}`;
    const [row] = yield* ask(inside.rows<{ count: number | string }>(sql, [name]));
    if (Number(row?.count ?? 0) >= max) throw tooMany(limit);
  }
}
