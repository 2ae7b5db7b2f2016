import { SessionCapacityError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { isOpen } from "../../session/query.ts";

/** How many sessions there may be when one more has been made. */
export interface MakeLimits {
  readonly maxOpenPerUser?: number | undefined;
  readonly maxForks?: number | undefined;
}

/** What may not become too many: the open sessions of a user, or the forks of a session. */
export interface Limit {
  readonly part: "open" | "forks";
  /** The user or the session. */
  readonly name: string;
  readonly max: number;
}

/** The limits that a session comes under when it is made or brought back. */
export function limitsOf(
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
 * Checks limits by looking at all live sessions, where nobody makes another meanwhile.
 *
 * @throws {SessionCapacityError} when there are as many as there may be.
 */
export function checkLimits(heads: () => readonly SessionHead[], limits: readonly Limit[]): void {
  for (const limit of limits) {
    const { part, name, max } = limit;
    const counted = heads().filter((head) =>
      part === "forks" ? head.header.forkedFrom?.sessionId === name : head.header.userId === name && isOpen(head),
    );
    if (counted.length >= max) throw tooMany(limit);
  }
}

/** The refusal of one more. */
export function tooMany({ part, max }: Limit): SessionCapacityError {
  return new SessionCapacityError(part === "forks" ? "forks of a session" : "open sessions of a user", max);
}
