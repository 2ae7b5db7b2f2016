import type { RunEvent } from "../agent/run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import type { GroupEvent } from "../group/group-event.ts";
import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { RunInput } from "../session/run-input.ts";
import type { WorkerView } from "../workers/worker-view.ts";
import type { Page, Problem } from "./wire.ts";

/* What server and client say to each other about runs; see `wire.ts`. */

/** Asks for a run. */
export interface RunRequest {
  /** A text, content parts, or messages: of users alone in a session in which something was said. */
  readonly input: RunInput;
  readonly agent?: string;
  /** Instead of the agent's own, as `provider/id`. */
  readonly model?: string;
  readonly ifBusy?: "reject" | "enqueue" | "interrupt";
  /** The group that answers, instead of an agent. */
  readonly group?: string;
  /** The caller's own name for the run: who asks again under it gets the same run. */
  readonly runId?: string;
  /** When it may begin at the earliest, as an ISO time. */
  readonly notBefore?: string;
  /** When it is stopped at the latest, as an ISO time. */
  readonly deadline?: string;
  /** JSON Schema, without patterns, of the value that the run is to end with. */
  readonly output?: JsonObject;
}

/** Where a run that has not ended stands. */
export type OpenRunStatus = "requested" | "running" | "parked" | "interrupted";

/** A run of a session, as its log tells it. */
export interface RunView {
  readonly runId: string;
  readonly sessionId: string;
  /** Whose session it is. */
  readonly userId: string | null;
  readonly agent: string | null;
  readonly group: string | null;
  /** Instead of the agent's own, as `provider/id`. */
  readonly model: string | null;
  /**
   * `requested`: it waits to begin, or to go on after an answer. `running`: some process has it. `parked`: it waits for an
   * answer, and nobody has it. `interrupted`: whoever had it is gone.
   */
  readonly status: OpenRunStatus | "finished" | "failed" | "cancelled";
  /** Who asked for it; null where that was the program itself. */
  readonly by: string | null;
  readonly requestedAt: string | null;
  /** When it may begin at the earliest; null for at once. */
  readonly notBefore: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Whether it waits and no worker is there that could take it, for want of its agent or group. */
  readonly withoutWorker: boolean;
  /** What it asks and nobody has answered yet. */
  readonly questions: readonly QuestionView[];
  /** The value that a finished run was asked for; null where it was asked for none. */
  readonly output: JsonValue;
  /** How the run failed; of one that waits, why no worker could begin it. */
  readonly problem: Problem | null;
}

/** A call that waits for a person's word. */
export interface QuestionView extends Pick<Approval, "callId" | "name" | "arguments" | "effects" | "reach"> {
  /** The entry that asks; its answer names it. */
  readonly question: string;
  readonly askedAt: string;
  /** When it counts as denied. */
  readonly expiresAt?: string;
}

/** Which runs to list. */
export interface ListRuns {
  /** How the runs stand; `asking` finds all that ask something, parked or not. */
  readonly state: OpenRunStatus | "asking";
  /** For administrators: only those of this user's sessions. */
  readonly userId?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** A worker, as a caller may see it: where it runs is told to administrators only. */
export interface FleetWorker extends Omit<WorkerView, "name" | "host"> {
  readonly name: string | null;
  readonly host: string | null;
}

/** Who runs what, and what waits to be run. */
export interface FleetView {
  /** Those that are there; of their runs, the first hundred of each, as far as they are of sessions that the caller may see. */
  readonly workers: readonly FleetWorker[];
  /** In how many sessions a run could begin now, whosesoever they are. */
  readonly waiting: number;
  /** The first runs that the caller may see and that wait to begin or to go on, and those whose worker is gone. */
  readonly requested: Page<RunView>;
  readonly interrupted: Page<RunView>;
}

/**
 * An event of a run as it is sent; what its errors say names nothing of the server.
 *
 * - What lasts is made from the session's log, so that every server tells it: `run-started`, `round-finished` (as soon as the
 *   answer is on record, before its calls run), `tool-finished`, `approval-required`, `compaction`, `run-parked`, and how it
 *   ended. The rest is told live by the worker that has the run, and may be missed.
 * - A second `run-started`, with another `claim`, says that another process went on with the run: what was told live since
 *   the last `round-finished` is void, so that a reader clears a partial answer.
 * - After `run-parked` nothing follows until its questions are answered; then it goes on with such a `run-started`.
 */
export type WireRunEvent = (RunEvent | GroupEvent) & { readonly claim?: number };

/** The answer to a question of a run. */
export interface AnswerRequest {
  readonly approve: boolean;
  /** Why not, for the model. */
  readonly reason?: string;
  /** For whoever reads the log. */
  readonly note?: string;
}
