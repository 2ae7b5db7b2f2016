import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { AssistantMessage, StopReason, ToolMessage } from "../message.ts";
import type { Usage } from "../usage.ts";
import type { RunQuestion } from "../value/run-result.ts";
import type { GroupEnd } from "./group-state.ts";

/** Why something in a run failed, as plain data: an event that contains it goes to JSON and back without loss. */
export interface RunError {
  /** One of docs/errors.md if Skein threw it; else the code that the error itself has, or null. */
  readonly code: string | null;
  readonly message: string;
  /** The fields of a Skein error: which session, which limit, how long to wait. */
  readonly details?: JsonObject;
  /** The thrown value, in the process that threw it; JSON and copies of this object do not carry it. */
  readonly cause?: unknown;
}

/** A call that waits for approval. */
export interface Approval extends RunQuestion {
  /** How many questions of the same answer follow immediately; left out if none does. */
  readonly following?: number;
  /** The run inside a tool that asks, if the call is not the run's own. */
  readonly innerRunId?: string;
}

/** How a group ended. */
export type GroupOutcome =
  | { readonly reason: GroupEnd }
  | { readonly reason: "agent-failed"; readonly agent: string; readonly error: RunError };

/** An event of an agent's run that its log records: at most one for each entry, in the order of the log. */
export type RecordedRunEvent = { readonly runId: string } & (
  | { readonly type: "run-started" }
  | {
      readonly type: "round-finished";
      readonly round: number;
      readonly message: AssistantMessage;
      readonly stopReason: StopReason;
    }
  | { readonly type: "approval-required"; readonly round: number; readonly approval: Approval }
  | { readonly type: "tool-finished"; readonly round: number; readonly callId: string; readonly message: ToolMessage }
  /** The older part of the context was replaced by a summary; the transcript keeps it. */
  | {
      readonly type: "compaction";
      readonly round: number;
      readonly entryId: string;
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
    }
  /** The run waits for answers and has released its session; nothing follows. */
  | { readonly type: "run-parked"; readonly questions: readonly Approval[]; readonly expiresAt?: string }
  | {
      readonly type: "run-finished";
      readonly truncated: boolean;
      /** What all claims of the run spent. */
      readonly usage: Usage | null;
      /** The value that the run was asked for, as the model wrote it. */
      readonly output?: JsonValue;
    }
  | { readonly type: "run-failed"; readonly error: RunError }
);

/** An event of a group's run that its log records; a question of one of its agents has the agent's name. */
export type RecordedGroupEvent = { readonly runId: string } & (
  | {
      readonly type: "group-started";
      readonly sessionId: string;
      /** The entry of the message that the group answers. */
      readonly messageId: string;
      readonly agents: readonly string[];
      /** Whether it goes on where an earlier run of the group stopped. */
      readonly resumed: boolean;
    }
  | {
      readonly type: "agent-finished";
      readonly agent: string;
      readonly kind: "spoke" | "passed" | "refused";
      /** The entry of its answer; null if it gave none. */
      readonly turnId: string | null;
      readonly text: string;
      /** Why it refused. */
      readonly error?: RunError;
    }
  | { readonly type: "agent-failed"; readonly agent: string; readonly error: RunError }
  | { readonly type: "group-finished"; readonly outcome: GroupOutcome }
  /** The run of the group was stopped, or cannot go on; what was said stays. */
  | { readonly type: "group-failed"; readonly error: RunError }
);

/** An event that the log of a run records. `claim` is the token of the lease under which a start was recorded. */
export type RecordedEvent = (
  | RecordedRunEvent
  | RecordedGroupEvent
  | (Extract<RecordedRunEvent, { type: "approval-required" }> & { readonly agent: string })
) & { readonly claim?: number };

const RUN_EVENTS: Readonly<Record<RecordedRunEvent["type"], true>> = {
  "run-started": true,
  "round-finished": true,
  "approval-required": true,
  "tool-finished": true,
  compaction: true,
  "run-parked": true,
  "run-finished": true,
  "run-failed": true,
};
const GROUP_EVENTS: Readonly<Record<RecordedGroupEvent["type"], true>> = {
  "group-started": true,
  "agent-finished": true,
  "agent-failed": true,
  "group-finished": true,
  "group-failed": true,
};

/**
 * Whether an event comes from a log alone. The log of a group records the questions of its agents; the other events of an agent's
 * own run, which carry its name, are live.
 */
export function isRecorded(event: { readonly type: string }): boolean {
  if (Object.hasOwn(GROUP_EVENTS, event.type)) return true;
  return Object.hasOwn(RUN_EVENTS, event.type) && (!("agent" in event) || event.type === "approval-required");
}

/** An error as an entry recorded it. */
export function recordedError(recorded: unknown): RunError {
  if (typeof recorded === "string") return { code: "ABORTED", message: recorded };
  const { code, message, details } = (recorded ?? {}) as Readonly<Record<string, unknown>>;
  return {
    code: typeof code === "string" ? code : null,
    message: typeof message === "string" ? message : "The log does not say why.",
    ...(typeof details === "object" && details !== null ? { details: details as JsonObject } : {}),
  };
}
