import { SessionError } from "../../session/errors.ts";

/** The error of every call on a closed store. */
export function storeClosed(): SessionError {
  return new SessionError("STORE_CLOSED", "The store is closed; open it again.");
}
