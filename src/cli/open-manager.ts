import { SessionManager, type SessionStore } from "../index.ts";

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
