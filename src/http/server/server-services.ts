import type { Agent } from "../../agent/agent.ts";
import type { Model } from "../../agent/model/model.ts";
import type { GroupSession } from "../../group/group-session.ts";
import type { ProgramImports } from "../../interop/formats/program-imports.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import type { SessionStore } from "../../session/store.ts";
import type { CallerRights } from "../caller-init.ts";
import type { ModelInfo } from "../wire.ts";
import type { RunQueue } from "../../workers/run-queue.ts";
import type { PlaceOf } from "../../workers/user-places.ts";
import type { UserStorage } from "../../workers/user-storage.ts";
import type { WorkerRoster } from "../../workers/worker-roster.ts";

/** The caller of a request; an `actor` for the manager. */
export interface Caller {
  readonly userId: string;
  /** Whether the caller may see and change everyone's sessions. */
  readonly admin: boolean;
  readonly may: CallerRights;
}

/** One line of the server's log. It contains no tokens and no messages. */
export interface ServerLogLine {
  readonly level: "info" | "error";
  readonly requestId: string;
  readonly method: string;
  /** The pattern of the route, not the path: an id may be a secret. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** The internal error with its stack. */
  readonly error?: string;
}

/** Receives the lines of the server's log. */
export type ServerLogger = (line: ServerLogLine) => void;

/** The services that routes use. */
export interface ServerServices {
  readonly manager: SessionManager;
  /** The manager's store. Code that reads it directly must check first that the caller may see the session. */
  readonly store: SessionStore;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly groups: ReadonlyMap<string, GroupSession>;
  /** Finds a model by `provider/id`; null if the server does not offer it. */
  readonly models: (id: string) => Model | null;
  readonly modelInfos: readonly ModelInfo[];
  /** The place of tools, for sessions without a place of their own. */
  readonly placeOf: PlaceOf;
  /** Counts and limits what is stored for each user. */
  readonly storage: UserStorage;
  /** Notifies workers of runs that wait. */
  readonly queue: RunQueue;
  /** The live workers. */
  readonly roster: WorkerRoster;
  /** How long a chat's run may have no readers before it is cancelled; null for no limit. */
  readonly cancelWhenLeftMs: number | null;
  /** The sessions of other programs on this machine; null if the server does not offer them. */
  readonly programs: ProgramImports | null;
  /** Aborts when the server starts to shut down: streams end, and no more runs start. */
  readonly drain: AbortSignal;
  /** Logs an error outside of any request. */
  readonly report: (error: unknown) => void;
}
