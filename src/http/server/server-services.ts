import type { Agent } from "../../agent/agent.ts";
import type { ParkOptions } from "../../agent/loop-options.ts";
import type { Model } from "../../agent/model/model.ts";
import type { Unasked } from "../../agent/tools/unasked.ts";
import type { GroupSession } from "../../group/group-session.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import type { SessionStore } from "../../session/store.ts";
import type { CallerRights } from "../caller-rights.ts";
import type { ParkedRun } from "../create-server.ts";
import type { ModelInfo } from "../wire.ts";
import type { PlaceOf } from "./user-places.ts";

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
  /** Which calls run without a person's word; undefined where the agents alone say so. */
  readonly unasked: Unasked | undefined;
  /** When runs let go of their sessions while they wait for a person's word. */
  readonly park: ParkOptions;
  /** Told of each run that parks here; never fails. */
  readonly onParked: (parked: ParkedRun) => void;
  /** How often it looks for runs that nobody has; 0 for never. */
  readonly recoverMs: number;
  /** Aborts when the server begins to shut down: streams end, and no run starts any more. */
  readonly drain: AbortSignal;
  /** Whether a run is one of this server's. */
  readonly isRunHere: (runId: string) => boolean;
  /** Logs what went wrong outside of any request. */
  readonly report: (error: unknown) => void;
}

/** The runs of a server, for whoever shuts it down: what `mountRuns(app, services)` gives back. */
export interface ServerRuns {
  /** Whether the run is under way here. */
  has(runId: string): boolean;
  /** Resolves when no run is under way. */
  idle(): Promise<void>;
  /** Aborts every run that is under way; what they have said so far is in the log, and they can be gone on with. */
  abortAll(): void;
}
