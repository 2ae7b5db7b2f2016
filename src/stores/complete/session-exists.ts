import { SessionError } from "../../session/errors.ts";

/** The error for a session id that is taken. */
export function sessionExists(id: string): SessionError {
  return new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}
