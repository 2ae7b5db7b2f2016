import { SessionError } from "../../session/errors.ts";

/** What every call on a closed store is refused with. */
export function storeClosed(): SessionError {
  return new SessionError("STORE_CLOSED", "The store is closed; open it again to go on.");
}
