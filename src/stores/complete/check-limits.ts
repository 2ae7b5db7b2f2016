import { SessionCapacityError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { isOpen } from "../../session/query.ts";

/** How many sessions there may be when one more has been made. */
export interface MakeLimits {
  readonly maxOpenPerUser?: number | undefined;
  readonly maxForks?: number | undefined;
}

/**
 * Checks limits by looking at all live sessions, where nobody makes another meanwhile.
 *
 * @throws {SessionCapacityError} when there are as many as there may be.
 */
export function checkLimits(
  heads: () => readonly SessionHead[],
  { userId, forkedFrom }: Pick<SessionHeader, "userId" | "forkedFrom">,
  { maxOpenPerUser, maxForks }: MakeLimits,
): void {
  if (forkedFrom !== null && maxForks !== undefined) {
    const isFork = ({ header }: SessionHead): boolean => header.forkedFrom?.sessionId === forkedFrom.sessionId;
    if (heads().filter(isFork).length >= maxForks) throw tooManyForks(maxForks);
  }
  if (userId === null || maxOpenPerUser === undefined) return;
  const isCounted = (head: SessionHead): boolean => head.header.userId === userId && isOpen(head);
  if (heads().filter(isCounted).length >= maxOpenPerUser) throw tooManyOpen(maxOpenPerUser);
}

/** The refusal of another fork. */
export function tooManyForks(limit: number): SessionCapacityError {
  return new SessionCapacityError("forks of a session", limit);
}

/** The refusal of another open session. */
export function tooManyOpen(limit: number): SessionCapacityError {
  return new SessionCapacityError("open sessions of a user", limit);
}
