import type { JsonValue } from "../internal/json.ts";
import type { AssistantMessage, StopReason, ToolMessage } from "../session/message.ts";
import type { Usage } from "../session/usage.ts";
import type { RunQuestion } from "../session/value/run-result.ts";
import type { ModelDelta } from "./model/model.ts";
import type { RunError } from "./run-error.ts";

/** A call that waits for a person's word. */
export interface Approval extends RunQuestion {
  /** How many questions of the same answer follow at once; none where it is left out. */
  readonly following?: number;
  /** The run inside of a tool that asks, where the call is not the run's own. */
  readonly innerRunId?: string;
}

/**
 * What happens in a run, as it happens. `round` counts the model's turns from 1, `runId` is the id that the log has the run
 * under. All of it is plain data, which JSON carries without loss. The first is `run-started`: the run has its session.
 */
export type RunEvent = { readonly runId: string } & (
  | { readonly type: "run-started" }
  | { readonly type: "round-started"; readonly round: number }
  | { readonly type: "text-delta" | "thinking-delta"; readonly round: number; readonly text: string }
  | (Extract<ModelDelta, { type: "tool-call-delta" }> & { readonly round: number })
  /** The model failed in a way that passes; what it said in this round so far is void. */
  | {
      readonly type: "model-retry";
      readonly round: number;
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: RunError;
    }
  | { readonly type: "usage"; readonly round: number; readonly usage: Usage; readonly cost?: number }
  /** The arguments are those that the tool is given, as far as JSON holds them; else those that the model wrote. */
  | {
      readonly type: "tool-started";
      readonly round: number;
      readonly callId: string;
      readonly name: string;
      readonly arguments: JsonValue;
    }
  | { readonly type: "tool-finished"; readonly round: number; readonly callId: string; readonly message: ToolMessage }
  | { readonly type: "approval-required"; readonly round: number; readonly approval: Approval }
  /**
   * What a run inside of a tool asked has its answer, or needs none any more. Of a run's own calls, `tool-started` and
   * `tool-finished` tell that.
   */
  | { readonly type: "approval-settled"; readonly round: number; readonly callId: string; readonly question: string }
  /** The older part of the context was replaced by a summary; the transcript keeps it. */
  | {
      readonly type: "compaction";
      readonly round: number;
      readonly entryId: string;
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
    }
  | {
      readonly type: "round-finished";
      readonly round: number;
      readonly message: AssistantMessage;
      readonly stopReason: StopReason;
    }
  /** Someone moved the session's leaf elsewhere: the run goes on on its own branch, off the active path. Told once. */
  | { readonly type: "leaf-moved"; readonly leafId: string | null }
  /** The reader was too slow, or came too late, for this many events, and goes on after them. */
  | { readonly type: "events-dropped"; readonly count: number }
  /** The run waits for answers and has let go of its session; nothing follows. */
  | { readonly type: "run-parked"; readonly questions: readonly Approval[]; readonly expiresAt: string }
  | {
      readonly type: "run-finished";
      readonly truncated: boolean;
      readonly usage: Usage | null;
      /** The value that the run was asked for, as the model wrote it. */
      readonly output?: JsonValue;
    }
  | { readonly type: "run-failed"; readonly error: RunError }
);
