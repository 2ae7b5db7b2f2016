import type { SessionStatus } from "../log/entry.ts";
import { SessionTransitionError } from "../errors.ts";

const NEXT: Readonly<Record<SessionStatus, readonly SessionStatus[]>> = {
  active: ["suspended", "closed"],
  suspended: ["active", "closed"],
  closed: [],
  expired: [],
};

/**
 * Which status a session may go to from which.
 *
 * - An active session can be suspended or closed; a suspended one can become active again, or be closed.
 * - Closed and expired are final. To stay where one is is no transition.
 * - Nobody asks a session to expire, so that expiry is not in this table: the sweeper records it.
 */
export const SessionStateMachine: {
  /** Whether a session may go from one status to the other. */
  readonly canTransition: (from: SessionStatus, to: SessionStatus) => boolean;
  /** @throws {SessionTransitionError} unless the session may go from one status to the other. */
  readonly validate: (sessionId: string, from: SessionStatus, to: SessionStatus) => void;
  /** Whether no status can follow. */
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

// A status may come from outside as any text, also as one that every object has as a key.
function nextOf(status: SessionStatus): readonly SessionStatus[] | undefined {
  return Object.hasOwn(NEXT, status) ? NEXT[status] : undefined;
}
