import { checkKeys, type KeysOf } from "../session/check-arguments.ts";
import { SessionError } from "../session/errors.ts";
import { checkName } from "../session/id.ts";
import type { SessionStore } from "../session/store.ts";
import { checkPath } from "../stores/complete/valid-arguments.ts";
import type { ActorOptions } from "./access.ts";
import type { Consolidator, WorkingMemory } from "./after-write.ts";
import type { StateOptions } from "./read-state.ts";
import type { ReportFailure } from "./report-failure.ts";
import type { SessionConfig } from "./session-config.ts";
import type { SessionEvents } from "./session-events.ts";

/** What a manager is made of. */
export interface SessionManagerInit {
  readonly store: SessionStore;
  /** The directory that the tools of new sessions act in, and of sessions that say nothing of it (default: none). */
  readonly workspace?: string;
  /** Whose the sessions are that `run` makes for nobody in particular (default: `local`, as at the command line). */
  readonly userId?: string;
  /** Limits and times; what is not given has its default. */
  readonly config?: Partial<SessionConfig>;
  /** Gets every turn once it is durable. */
  readonly memory?: WorkingMemory;
  /** Gets every session that was closed or expired. */
  readonly consolidator?: Consolidator;
  /** Where events go (default: a set of listeners of this manager's own). */
  readonly events?: SessionEvents;
  /** Told when memory, consolidator, a listener or a sweep fails (default: a process warning). */
  readonly onError?: ReportFailure;
  /** What time it is; the system's clock unless given. */
  readonly clock?: () => Date;
  /** Makes ids of sessions, branches and checkpoints (default: UUIDv7). */
  readonly ids?: () => string;
}

/** On whose behalf, and what is to come back: without turns, a state costs the same whatever the session's length. */
export interface ManagedStateOptions extends ActorOptions, StateOptions {}

/** Where a fork begins. */
export interface ManagedForkOptions extends ManagedStateOptions {
  /** A checkpoint of the session, instead of where it stands now. */
  readonly fromCheckpoint?: string;
  /** The last entry that the fork takes over (null: none), instead of where the session stands now. */
  readonly at?: string | null;
  /** Whether it counts as a session of its user, so that `maxSessionsPerUser` holds for it (default false). */
  readonly counted?: boolean;
}

/** The keys of what a manager is made of. */
export const MANAGER_KEYS: KeysOf<SessionManagerInit> = {
  store: true,
  workspace: true,
  userId: true,
  config: true,
  memory: true,
  consolidator: true,
  events: true,
  onError: true,
  clock: true,
  ids: true,
};

/** @throws {SessionError} `INVALID_OPTION` without a store, or with a workspace that is no path; `INVALID_ID` for no user. */
export function checkInit(init: SessionManagerInit): SessionManagerInit {
  if (typeof init?.store?.append !== "function") {
    throw new SessionError("INVALID_OPTION", "A session manager needs a store; open one with openStore.");
  }
  checkKeys(init, MANAGER_KEYS, "A session manager");
  checkWorkspace(init.workspace);
  if (init.userId !== undefined) checkName(init.userId, "a user");
  return init;
}

/** @throws {SessionError} `INVALID_OPTION` for a workspace that is no path. */
export function checkWorkspace(workspace: unknown): void {
  if (workspace !== undefined) checkPath(workspace, "workspace");
}
