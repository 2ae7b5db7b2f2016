import { SessionCapacityError } from "../../session/errors.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** Call it in the transaction that opens one more. @throws {SessionCapacityError} when a user has that many open sessions. */
export function checkOpen(handle: SqliteHandle, userId: string | null, limit: number | undefined): void {
  if (userId === null || limit === undefined) return;
  const row = handle
    .prepare(
      `SELECT count(*) AS count FROM sessions
       WHERE user_id = ? AND deleted_at IS NULL AND status IN ('active', 'suspended')`,
    )
    .get<{ count: number }>([userId]);
  if (Number(row?.count ?? 0) >= limit) throw new SessionCapacityError("open sessions of a user", limit);
}
