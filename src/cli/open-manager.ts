import { type ActorOptions, LOCAL_USER } from "../lifecycle/access.ts";
import { openManager as openOwnManager, SessionManager, type SessionStore } from "../index.ts";
import { budgetsInEnvironment, configInEnvironment } from "../lifecycle/config-from-environment.ts";
import { UNLIMITED_SESSIONS } from "../lifecycle/session-config.ts";

/** The actor of the command line: the person at the terminal, who may access every session of the store. */
export const AT_TERMINAL: ActorOptions = { actor: { userId: LOCAL_USER, admin: true } };

/** A manager for the person at the terminal: that of programs of theirs, with the budgets in the environment. */
export function openManager(store: SessionStore): Promise<SessionManager> {
  return openOwnManager({ store, ...budgetsInEnvironment() });
}

/**
 * A manager for the users of a service. Limits come from the environment, else the defaults; sessions expire only if
 * SKEIN_SESSION_TTL is set.
 */
export function openServiceManager(store: SessionStore): SessionManager {
  const { sessionTtl } = UNLIMITED_SESSIONS;
  return new SessionManager({ store, config: { sessionTtl, ...configInEnvironment() }, ...budgetsInEnvironment() });
}
