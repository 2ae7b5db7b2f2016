import type { Agent } from "../../agent/agent.ts";
import type { Model } from "../../agent/model/model.ts";
import type { GroupSession } from "../../group/group-session.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import type { SessionStore } from "../../session/store.ts";
import type { CallerRights } from "../caller-rights.ts";
import type { ModelInfo } from "../wire.ts";
import type { RunQueue } from "../../workers/run-queue.ts";
import type { PlaceOf } from "../../workers/user-places.ts";
import type { UserStorage } from "../../workers/user-storage.ts";
import type { WorkerRoster } from "../../workers/worker-roster.ts";

/** Who a request comes from; an `actor` of the manager. */
export interface Caller {
  readonly userId: string;
  /** Whether they may see and change everyone's sessions. */
  readonly admin: boolean;
  readonly may: CallerRights;
}

/** One line of the server's log. Neither tokens nor what was said are in it. */
export interface ServerLogLine {
  readonly level: "info" | "error";
  readonly requestId: string;
  readonly method: string;
  /** The pattern of the route, not the path: an id may be a secret. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** What went wrong in the server, with its stack. */
  readonly error?: string;
}

/** Takes the lines of the server's log. */
export type ServerLogger = (line: ServerLogLine) => void;

/** What the routes stand on. */
export interface ServerServices {
  readonly manager: SessionManager;
  /** The manager's store. Whoever reads it directly checks first that the caller may see the session. */
  readonly store: SessionStore;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly groups: ReadonlyMap<string, GroupSession>;
  /** A model by `provider/id`; null when the server does not offer it. */
  readonly models: (id: string) => Model | null;
  readonly modelInfos: readonly ModelInfo[];
  /** Where the tools of agents act, in sessions that do not say so themselves. */
  readonly placeOf: PlaceOf;
  /** What users keep, and may keep. */
  readonly storage: UserStorage;
  /** Tells workers that a run waits. */
  readonly queue: RunQueue;
  /** The workers that are there. */
  readonly roster: WorkerRoster;
  /** For how long nobody may read the run of a chat before it is stopped; null for ever. */
  readonly cancelWhenLeftMs: number | null;
  /** Aborts when the server begins to shut down: streams end, and no run starts any more. */
  readonly drain: AbortSignal;
  /** Logs what went wrong outside of any request. */
  readonly report: (error: unknown) => void;
}
