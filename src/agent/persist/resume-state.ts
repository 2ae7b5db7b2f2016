import { createHash } from "node:crypto";
import { defined } from "../../internal/defined.ts";
import type { JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "../../session/log/entry.ts";
import type { SandboxPlacement } from "../../session/log/header.ts";
import type { QueuedInput, RunState } from "../../session/log/run-fold.ts";
import type { ToolCall } from "../../session/message.ts";
import type { Transcript } from "../../session/value/transcript.ts";

/** What a person decided about a call: it may run, or it may not, with the reason. */
export type ApprovalDecision =
  | { readonly approved: true }
  | {
      readonly approved: false;
      readonly reason: string | null;
      /** The user who gave the reason. */
      readonly by?: string;
    };

/** Only a clear yes lets a call run. */
export function decisionOf(
  decision: JsonValue,
  { note, by }: Pick<EntryOf<"approval">, "note" | "by">,
): ApprovalDecision {
  const given = (typeof decision === "object" && decision !== null ? decision : {}) as Record<string, unknown>;
  if (given.approved === true) return { approved: true };
  const reason = typeof given.reason === "string" ? given.reason : (note ?? null);
  return { approved: false, reason, ...defined({ by }) };
}

/** What a question is about beside its position: a decision about other arguments does not count. */
export function digestOfCall({ name, arguments: args }: ToolCall): string {
  return createHash("sha256")
    .update(JSON.stringify([name, args]))
    .digest("base64");
}

/** What a log says of a call that a person was asked about. */
export interface AskedBefore {
  /** The entry that asks; null where another one is to ask anew. */
  readonly question: string | null;
  readonly decision: ApprovalDecision | null;
  /** The decision is that nobody answered in time, which is not on record yet. */
  readonly expired?: true;
}

/** What a log says about a run that stopped in the middle. */
export interface ResumeState {
  /** The session, and how long its log was when this was read. */
  readonly sessionId: string;
  readonly version: number;
  /** The run that stopped, where it has not ended: whoever goes on in the session goes on with it. */
  readonly runId: string | null;
  /** That run as its log tells it; if none is open, a new one with what the last one left. */
  readonly run: RunState;
  /**
   * Whether the calls without a result came with a fork or an import, are those of another run, or were appended by someone who
   * had no run: they never run here.
   */
  readonly inherited: boolean;
  /** Whether the run had given its last answer, and only its end is not on record. */
  readonly answered: boolean;
  /** The names of the tools that the run had at its last answer; null if the log does not record them. */
  readonly tools: readonly string[] | null;
  /** Calls without a result whose effect may have happened, by their positions in the last answer. */
  readonly effects: ReadonlySet<number>;
  /** Calls without a result that a person was asked about, by their positions in the last answer. */
  readonly approvals: ReadonlyMap<number, AskedBefore>;
  /** Input that was never delivered, in order. */
  readonly queued: readonly QueuedInput[];
  /** Where its tools acted, if it said so. */
  readonly sandbox: SandboxPlacement | null;
}

const states = new WeakMap<Transcript, ResumeState>();

/** Notes with a transcript how the run that wrote it stopped. */
export function setResumeState(transcript: Transcript, state: ResumeState): void {
  states.set(transcript, state);
}

/** How the run that wrote a transcript stopped, where `resumeSession` has found that out. */
export function resumeStateOf(transcript: Transcript): ResumeState | null {
  return states.get(transcript) ?? null;
}

/** Forgets that open calls of a transcript were allowed, so that a person is asked anew. What was denied stays denied. */
export function forgetConsent(transcript: Transcript): void {
  const state = resumeStateOf(transcript);
  if (state === null) return;
  const anew: AskedBefore = { question: null, decision: null };
  const approvals = [...state.approvals].map(
    ([id, word]) => [id, word.decision?.approved === true ? anew : word] as const,
  );
  setResumeState(transcript, { ...state, approvals: new Map(approvals) });
}
