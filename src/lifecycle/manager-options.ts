import { checkArgument, checkKeys, type KeysOf } from "../session/check-arguments.ts";
import { SessionError } from "../session/errors.ts";
import { checkName } from "../session/id.ts";
import type { SessionStore } from "../session/store.ts";
import { checkPath } from "../stores/complete/valid-arguments.ts";
import type { ActorOptions } from "./access.ts";
import type { UserBudget } from "./budgets/user-budget.ts";
import type { Consolidator, WorkingMemory } from "./after-write.ts";
import type { StateOptions } from "./read-state.ts";
import type { ReportFailure } from "./report-failure.ts";
import type { SessionConfig } from "./session-config.ts";
import type { SessionEvents } from "./session-events.ts";

/** The options of a `SessionManager`. */
export interface SessionManagerInit {
  readonly store: SessionStore;
  /** The directory in which tools act, for new sessions and for sessions without a place (default: none). */
  readonly workspace?: string;
  /** The user of sessions that `run` creates without a `userId` (default: `local`, as on the command line). */
  readonly userId?: string;
  /** Limits and times; fields that are left out have defaults. */
  readonly config?: Partial<SessionConfig>;
  /** How much each user may spend (default: any amount). The store needs a ledger, as all stores of this package have. */
  readonly budgets?: readonly UserBudget[];
  /** Receives every turn after it is durable. */
  readonly memory?: WorkingMemory;
  /** Receives every session after it was closed or has expired. */
  readonly consolidator?: Consolidator;
  /** Where events are emitted (default: an emitter of this manager). */
  readonly events?: SessionEvents;
  /** Called when the memory, the consolidator, a listener or a sweep fails (default: a process warning). */
  readonly onError?: ReportFailure;
  /** The source of the time (default: the system's clock). */
  readonly clock?: () => Date;
  /** Generates the ids of sessions, branches and checkpoints (default: UUIDv7). */
  readonly ids?: () => string;
}

/** The actor, and what is returned: without turns, the cost of a state does not depend on the session's length. */
export interface ManagedStateOptions extends ActorOptions, StateOptions {}

/** Options of a fork. */
export interface ManagedForkOptions extends ManagedStateOptions {
  /** Forks at a checkpoint of the session, instead of its current position. */
  readonly fromCheckpoint?: string;
  /** The last entry that the fork inherits (null: none); default: the session's last. */
  readonly at?: string | null;
  /** Whether the fork counts against `maxSessionsPerUser` (default false). */
  readonly counted?: boolean;
}

/** The keys of `SessionManagerInit`. */
export const MANAGER_KEYS: KeysOf<SessionManagerInit> = {
  store: true,
  workspace: true,
  userId: true,
  config: true,
  budgets: true,
  memory: true,
  consolidator: true,
  events: true,
  onError: true,
  clock: true,
  ids: true,
};

/** @throws {SessionError} `INVALID_OPTION` without a store or for an invalid workspace, `INVALID_ID` for an invalid user. */
export function checkInit(init: SessionManagerInit): SessionManagerInit {
  if (typeof init?.store?.append !== "function") {
    throw new SessionError("INVALID_OPTION", "A session manager needs a store; open one with openStore.");
  }
  checkKeys(init, MANAGER_KEYS, "A session manager");
  checkWorkspace(init.workspace);
  if (init.userId !== undefined) checkName(init.userId, "a user");
  const { memory, consolidator, events, onError, clock, ids } = init;
  const functions = {
    "memory.add": memory === undefined ? undefined : (memory?.add ?? null),
    "consolidator.consolidate": consolidator === undefined ? undefined : (consolidator?.consolidate ?? null),
    "events.on": events === undefined ? undefined : (events?.on ?? null),
    ...{ onError, clock, ids },
  };
  for (const [name, given] of Object.entries(functions))
    checkArgument(
      given === undefined || typeof given === "function",
      given,
      "A session manager",
      `a function in ${name}`,
    );
  return init;
}

/** @throws {SessionError} `INVALID_OPTION` for a workspace that is not a path. */
export function checkWorkspace(workspace: unknown): void {
  if (workspace !== undefined) checkPath(workspace, "workspace");
}
