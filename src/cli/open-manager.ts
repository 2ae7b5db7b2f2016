import type { ActorOptions } from "../lifecycle/access.ts";
import { SessionManager, type SessionStore } from "../index.ts";

/** Whoever sits at the terminal, as the log names them: the user that a server without tokens of others serves, too. */
export const LOCAL_USER = "local";

/** On behalf of whoever sits at the terminal, who may see every session of the store. */
export const AT_TERMINAL: ActorOptions = { actor: { userId: LOCAL_USER, admin: true } };

/**
 * A manager for whoever sits at the terminal. The limits of a service are not theirs: no session is too many or too long,
 * and none expires by being looked at.
 */
export function openManager(store: SessionStore): SessionManager {
  const unlimited = Number.MAX_SAFE_INTEGER;
  return new SessionManager({
    store,
    config: {
      sessionTtl: 0,
      maxSessionsPerUser: unlimited,
      maxTurnsPerSession: unlimited,
      maxBranchesPerSession: unlimited,
    },
  });
}
