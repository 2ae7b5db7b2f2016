import { type ActorOptions, LOCAL_USER } from "../lifecycle/access.ts";
import { SessionManager, type SessionStore } from "../index.ts";
import { configInEnvironment } from "../lifecycle/config-from-environment.ts";
import { UNLIMITED_SESSIONS } from "../lifecycle/session-config.ts";

/** On behalf of whoever sits at the terminal, who may see every session of the store. */
export const AT_TERMINAL: ActorOptions = { actor: { userId: LOCAL_USER, admin: true } };

/**
 * A manager for whoever sits at the terminal. The limits of a service are not theirs: no session is too many or too long,
 * and none expires by being looked at.
 */
export function openManager(store: SessionStore): SessionManager {
  return new SessionManager({ store, config: UNLIMITED_SESSIONS });
}

/**
 * A manager for the users of a service. The caps are those of the environment or the defaults; sessions expire only where
 * SKEIN_SESSION_TTL says when.
 */
export function openServiceManager(store: SessionStore): SessionManager {
  const { sessionTtl } = UNLIMITED_SESSIONS;
  return new SessionManager({ store, config: { sessionTtl, ...configInEnvironment() } });
}
