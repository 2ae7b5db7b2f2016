import type { RunEvent } from "../agent/run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import type { GroupEvent } from "../group/group-event.ts";
import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { RunInput } from "../session/run-input.ts";
import type { WorkerView } from "../workers/worker-view.ts";
import type { Page, Problem } from "./wire.ts";

/* The types of requests and answers about runs; see `wire.ts`. */

/** A request for a run. */
export interface RunRequest {
  /** A text, content parts, or messages: only messages of users if the session already has messages. */
  readonly input: RunInput;
  readonly agent?: string;
  /** Instead of the agent's own, as `provider/id`. */
  readonly model?: string;
  readonly ifBusy?: "reject" | "enqueue" | "interrupt";
  /** The group that answers, instead of an agent. */
  readonly group?: string;
  /** The caller's own id for the run: a repeated request with it gets the same run. */
  readonly runId?: string;
  /** The earliest start, as an ISO time. */
  readonly notBefore?: string;
  /** When the run is stopped if it has not ended, as an ISO time. */
  readonly deadline?: string;
  /** The JSON Schema, without patterns, of the value that the run returns. */
  readonly output?: JsonObject;
}

/** The state of an open run. */
export type OpenRunStatus = "requested" | "running" | "parked" | "interrupted";

/** A run of a session, computed from its log. */
export interface RunView {
  readonly runId: string;
  readonly sessionId: string;
  /** The user of the session. */
  readonly userId: string | null;
  readonly agent: string | null;
  readonly group: string | null;
  /** Instead of the agent's own, as `provider/id`. */
  readonly model: string | null;
  /**
   * `requested`: waits to start, or to continue after an answer. `running`: a process runs it. `parked`: waits for an answer, and
   * no process runs it. `interrupted`: its process has died.
   */
  readonly status: OpenRunStatus | "finished" | "failed" | "cancelled";
  /** The user who requested the run; null if the program itself started it. */
  readonly by: string | null;
  readonly requestedAt: string | null;
  /** The earliest start; null for immediately. */
  readonly notBefore: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** True if the run waits and no live worker has its agent or group. */
  readonly withoutWorker: boolean;
  /** The questions without an answer. */
  readonly questions: readonly QuestionView[];
  /** The value that the run was to return; null if none was requested. */
  readonly output: JsonValue;
  /** Why the run failed; for a run that waits, why no worker could start it. */
  readonly problem: Problem | null;
}

/** A call that waits for approval. */
export interface QuestionView extends Pick<Approval, "callId" | "name" | "arguments" | "effects" | "reach"> {
  /** The id of the entry with the question; an answer refers to it. */
  readonly question: string;
  readonly askedAt: string;
  /** The time at which an unanswered question counts as denied. */
  readonly expiresAt?: string;
}

/** Which runs to list. */
export interface ListRuns {
  /** The state of the runs; `asking` finds all runs with an open question, parked or not. */
  readonly state: OpenRunStatus | "asking";
  /** For administrators: only runs in sessions of this user. */
  readonly userId?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** A worker; its name and host are shown to administrators only. */
export interface FleetWorker extends Omit<WorkerView, "name" | "host"> {
  readonly name: string | null;
  readonly host: string | null;
}

/** The workers with their runs, and the runs that wait. */
export interface FleetView {
  /** The live workers, each with its first hundred runs, as far as the caller may see their sessions. */
  readonly workers: readonly FleetWorker[];
  /** The number of sessions, of all users, with a run that could start now. */
  readonly waiting: number;
  /**
   * The first runs that wait to start or to continue, and the first whose worker has died, as far as the caller may see them.
   */
  readonly requested: Page<RunView>;
  readonly interrupted: Page<RunView>;
}

/**
 * An event of a run as it is sent; its error messages contain nothing about the server.
 *
 * - Lasting events are computed from the session's log, so every server sends them: `run-started`, `round-finished` (when the
 *   answer is recorded, before its calls run), `tool-finished`, `approval-required`, `compaction`, `run-parked`, and the end of
 *   the run. The other events are live: the worker of the run publishes them, and they can be missed.
 * - A second `run-started`, with another `claim`, means that another process continues the run: live events since the last
 *   `round-finished` are discarded, so a reader clears a partial answer.
 * - After `run-parked` nothing follows until the questions are answered; then the next event is such a `run-started`. If
 *   the run is cancelled instead, it is `run-failed`.
 */
export type WireRunEvent = (RunEvent | GroupEvent) & { readonly claim?: number };

/** The answer to a question of a run. */
export interface AnswerRequest {
  readonly approve: boolean;
  /** The reason for a denial, for the model. */
  readonly reason?: string;
  /** A note for readers of the log. */
  readonly note?: string;
}
