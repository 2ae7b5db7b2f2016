import { SessionCapacityError } from "../../session/errors.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";

/** Keeps others from opening one too until the transaction ends. @throws {SessionCapacityError} at the limit. */
export async function checkOpen(
  { schema }: PostgresHandle,
  transaction: Transaction,
  userId: string | null,
  limit: number | undefined,
): Promise<void> {
  if (userId === null || limit === undefined) return;
  // Two that make sessions for one user at once must not both find the last free place.
  await transaction.read("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 1))", [`skein ${schema} ${userId}`]);
  const [row] = await transaction.read<{ count: string }>(
    `SELECT count(*) AS count FROM ${schema}.sessions
     WHERE user_id = $1 AND deleted_at IS NULL AND status IN ('active', 'suspended')`,
    [userId],
  );
  if (Number(row?.count ?? 0) >= limit) throw new SessionCapacityError("open sessions of a user", limit);
}
