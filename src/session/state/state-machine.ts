import type { SessionStatus } from "../log/entry.ts";
import { SessionTransitionError } from "../errors.ts";

const NEXT: Readonly<Record<SessionStatus, readonly SessionStatus[]>> = {
  active: ["suspended", "closed"],
  suspended: ["active", "closed"],
  closed: [],
  expired: [],
};

/**
 * The allowed transitions between statuses.
 *
 * - An active session can be suspended or closed; a suspended one can become active again, or be closed.
 * - Closed and expired are final. Keeping a status is not a transition.
 * - Expiry is not in this table, because it is never requested: the sweeper records it.
 */
export const SessionStateMachine: {
  /** Whether a transition is allowed. */
  readonly canTransition: (from: SessionStatus, to: SessionStatus) => boolean;
  /** @throws {SessionTransitionError} unless the transition is allowed. */
  readonly validate: (sessionId: string, from: SessionStatus, to: SessionStatus) => void;
  /** Whether the status is final. */
  readonly isTerminal: (status: SessionStatus) => boolean;
} = Object.freeze({ canTransition, validate, isTerminal });

function canTransition(from: SessionStatus, to: SessionStatus): boolean {
  return nextOf(from)?.includes(to) === true;
}

function validate(sessionId: string, from: SessionStatus, to: SessionStatus): void {
  if (!canTransition(from, to)) throw new SessionTransitionError(sessionId, from, to);
}

function isTerminal(status: SessionStatus): boolean {
  return nextOf(status)?.length === 0;
}

// A status can be any text from outside, also the name of an inherited property.
function nextOf(status: SessionStatus): readonly SessionStatus[] | undefined {
  return Object.hasOwn(NEXT, status) ? NEXT[status] : undefined;
}
