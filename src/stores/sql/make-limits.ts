import { SessionCapacityError } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { type Asking, ask } from "../rows/asking.ts";
import type { MakeLimits } from "../rows/row-port.ts";
import type { SqlDialect, SqlRunner } from "./sql-database.ts";

/** Call it in the transaction that makes a session. @throws {SessionCapacityError} when there are as many as there may be. */
export function* checkLimits(
  dialect: SqlDialect,
  inside: SqlRunner,
  header: SessionHeader,
  { maxForks, maxOpenPerUser }: MakeLimits,
): Asking<void> {
  const sourceId = header.forkedFrom?.sessionId;
  if (sourceId !== undefined && maxForks !== undefined) {
    const forks = `${dialect.prefix}session_parents JOIN ${dialect.prefix}sessions ON key = session_key
      WHERE parent_id = ? AND forked AND deleted_at IS NULL`;
    if ((yield* count(inside, forks, sourceId)) >= maxForks)
      throw new SessionCapacityError("forks of a session", maxForks);
  }
  yield* checkOpen(dialect, inside, header.userId, maxOpenPerUser);
}

/** Call it in the transaction that opens one more. @throws {SessionCapacityError} when a user has that many open sessions. */
export function* checkOpen(
  { prefix, lockName }: SqlDialect,
  inside: SqlRunner,
  userId: string | null,
  limit: number | undefined,
): Asking<void> {
  if (userId === null || limit === undefined) return;
  // Two that make sessions for one user at once must not both find the last free place.
  if (lockName !== null) yield* ask(inside.rows(lockName, [`skein ${prefix} ${userId}`]));
  const open = `${prefix}sessions WHERE user_id = ? AND deleted_at IS NULL AND status IN ('active', 'suspended')`;
  if ((yield* count(inside, open, userId)) >= limit) throw new SessionCapacityError("open sessions of a user", limit);
}

function* count(inside: SqlRunner, from: string, value: string): Asking<number> {
  const [row] = yield* ask(inside.rows<{ count: number | string }>(`SELECT count(*) AS count FROM ${from}`, [value]));
  return Number(row?.count ?? 0);
}
