import { type Limit, tooMany } from "../complete/session-limits.ts";
import { type Coroutine, waitFor } from "../rows/coroutine.ts";
import type { SqlDialect, SqlRunner } from "./sql-database.ts";

/** Checks limits inside the transaction that creates or undeletes a session. @throws {SessionCapacityError} if one is reached. */
export function* checkSqlLimits(
  { prefix, lockName }: SqlDialect,
  transaction: SqlRunner,
  limits: readonly Limit[],
): Coroutine<void> {
  const forks = `${prefix}session_parents JOIN ${prefix}sessions ON key = session_key
    WHERE parent_id = ? AND forked AND deleted_at IS NULL`;
  const open = `${prefix}sessions WHERE user_id = ? AND deleted_at IS NULL AND status IN ('active', 'suspended')`;
  for (const limit of limits) {
    const { part, name, max } = limit;
    // Two transactions that create sessions for the same user must not both pass the check with one session left.
    if (part === "open" && lockName !== null) yield* waitFor(transaction.rows(lockName, [`skein ${prefix} ${name}`]));
    const sql = `SELECT count(*) AS count FROM ${part === "open" ? open : forks}`;
    const [row] = yield* waitFor(transaction.rows<{ count: number | string }>(sql, [name]));
    if (Number(row?.count ?? 0) >= max) throw tooMany(limit);
  }
}
