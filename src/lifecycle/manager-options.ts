import { SessionError } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";
import type { ActorOptions } from "./access.ts";
import type { Consolidator, WorkingMemory } from "./after-write.ts";
import type { StateOptions } from "./read-state.ts";
import type { ReportFailure } from "./report-failure.ts";
import type { SessionConfig } from "./session-config.ts";
import type { SessionEvents } from "./session-events.ts";

/** What a manager is made of. */
export interface SessionManagerInit {
  readonly store: SessionStore;
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

/** @throws {SessionError} `INVALID_OPTION` without a store. */
export function checkInit(init: SessionManagerInit): SessionManagerInit {
  if (typeof init?.store?.append === "function") return init;
  throw new SessionError("INVALID_OPTION", "A session manager needs a store; open one with openStore.");
}
