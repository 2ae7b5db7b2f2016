import { SessionCapacityError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { isOpen } from "../../session/query.ts";

/** The limits that a new session is checked against. */
export interface MakeLimits {
  readonly maxOpenPerUser?: number | undefined;
  readonly maxForks?: number | undefined;
}

/** One limit: on the open sessions of a user, or on the forks of a session. */
export interface Limit {
  readonly part: "open" | "forks";
  /** The id of the user, or of the source session. */
  readonly name: string;
  readonly max: number;
}

/** The limits that apply to a session when it is created, forked or undeleted. */
export function sessionLimitsOf(
  { userId, forkedFrom }: Pick<SessionHeader, "userId" | "forkedFrom">,
  { maxOpenPerUser, maxForks }: MakeLimits,
): readonly Limit[] {
  const limits: Limit[] = [];
  if (forkedFrom !== null && maxForks !== undefined)
    limits.push({ part: "forks", name: forkedFrom.sessionId, max: maxForks });
  if (userId !== null && maxOpenPerUser !== undefined) limits.push({ part: "open", name: userId, max: maxOpenPerUser });
  return limits;
}

/**
 * Checks limits by counting among all live sessions. Call it under a lock that keeps others from creating sessions.
 *
 * @throws {SessionCapacityError} if a limit is reached.
 */
export function checkSessionLimits(heads: () => readonly SessionHead[], limits: readonly Limit[]): void {
  for (const limit of limits) {
    const { part, name, max } = limit;
    const counted = heads().filter((head) =>
      part === "forks" ? head.header.forkedFrom?.sessionId === name : head.header.userId === name && isOpen(head),
    );
    if (counted.length >= max) throw tooMany(limit);
  }
}

/** The error for a limit that is reached. */
export function tooMany({ part, max }: Limit): SessionCapacityError {
  return new SessionCapacityError(part === "forks" ? "forks of a session" : "open sessions of a user", max);
}
