import { SessionManager, type SessionStore, sessionConfigFromEnvironment } from "../index.ts";

/**
 * A manager for one command, with the limits that the environment sets. A session counts as expired once that is on record:
 * whoever looks at an old session or goes on with it does not end it by that.
 */
export function openManager(store: SessionStore): SessionManager {
  return new SessionManager({ store, config: { ...sessionConfigFromEnvironment(), sessionTtl: 0 } });
}
