import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { AssistantMessage, StopReason, ToolMessage } from "../message.ts";
import type { Usage } from "../usage.ts";
import type { RunQuestion } from "../value/run-result.ts";
import type { GroupEnd } from "./group-state.ts";

/** Why something in a run failed, as plain data: an event that contains it survives a round trip through JSON. */
export interface RunError {
  /** A code of docs/errors.md if Skein threw the error; otherwise the error's own code, or null. */
  readonly code: string | null;
  readonly message: string;
  /** The fields of a Skein error, such as the session, the limit or the retry delay. */
  readonly details?: JsonObject;
  /** The thrown value, in the process that threw it; JSON and copies of this object do not carry it. */
  readonly cause?: unknown;
}

/** A call that waits for approval. */
export interface Approval extends RunQuestion {
  /** How many questions of the same answer follow immediately; left out if none does. */
  readonly following?: number;
  /** For a call of a run inside a tool: the id of that run. */
  readonly innerRunId?: string;
}

/** How a group ended. */
export type GroupOutcome =
  | { readonly reason: GroupEnd }
  | { readonly reason: "agent-failed"; readonly agent: string; readonly error: RunError };

/** An event of a run that is derived from the log: at most one for each entry, in log order. */
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
  /** The older part of the context was replaced by a summary; the transcript still has it. */
  | {
      readonly type: "compaction";
      readonly round: number;
      readonly entryId: string;
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
    }
  /** The run waits for answers and released its session; no event follows. */
  | { readonly type: "run-parked"; readonly questions: readonly Approval[]; readonly expiresAt?: string }
  | {
      readonly type: "run-finished";
      readonly truncated: boolean;
      /** The usage of all claims of the run. */
      readonly usage: Usage | null;
      /** The structured output of the run, as the model wrote it. */
      readonly output?: JsonValue;
    }
  | { readonly type: "run-failed"; readonly error: RunError }
);

/** An event of a group's run that is derived from the log. A question of one of its agents has the agent's name. */
export type RecordedGroupEvent = { readonly runId: string } & (
  | {
      readonly type: "group-started";
      readonly sessionId: string;
      /** The id of the message that the group answers. */
      readonly messageId: string;
      readonly agents: readonly string[];
      /** Whether the group continues where an earlier run of it stopped. */
      readonly resumed: boolean;
    }
  | {
      readonly type: "agent-finished";
      readonly agent: string;
      readonly kind: "spoke" | "passed" | "refused";
      /** The id of its answer; null if it gave none. */
      readonly turnId: string | null;
      readonly text: string;
      /** Why the agent refused. */
      readonly error?: RunError;
    }
  | { readonly type: "agent-failed"; readonly agent: string; readonly error: RunError }
  | { readonly type: "group-finished"; readonly outcome: GroupOutcome }
  /** The run of the group was stopped, or cannot continue; its messages are kept. */
  | { readonly type: "group-failed"; readonly error: RunError }
);

/** An event that is derived from the log. `claim` is the token of the lease under which a start was recorded. */
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
 * Whether an event can be derived from the log alone. The log of a group records the questions of its agents; other
 * events of an agent's own run, which carry its name, are live only.
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
