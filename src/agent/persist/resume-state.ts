import { createHash } from "node:crypto";
import { defined } from "../../internal/defined.ts";
import type { JsonValue } from "../../internal/json.ts";
import type { EntryOf } from "../../session/log/entry.ts";
import type { SandboxPlacement } from "../../session/log/header.ts";
import type { QueuedInput, RunState } from "../../session/log/run-fold.ts";
import type { ToolCall } from "../../session/message.ts";
import type { Session } from "../../session/value/session.ts";
import type { Transcript } from "../../session/value/transcript.ts";

/** The decision about a call: approved, or denied with a reason. */
export type ApprovalDecision =
  | { readonly approved: true }
  | {
      readonly approved: false;
      readonly reason: string | null;
      /** The user who gave the reason. */
      readonly by?: string;
    };

/** Only an explicit approval lets a call run. */
export function decisionOf(
  decision: JsonValue,
  { note, by }: Pick<EntryOf<"approval">, "note" | "by">,
): ApprovalDecision {
  const given = (typeof decision === "object" && decision !== null ? decision : {}) as Record<string, unknown>;
  if (given.approved === true) return { approved: true };
  const reason = typeof given.reason === "string" ? given.reason : (note ?? null);
  return { approved: false, reason, ...defined({ by }) };
}

/** Identifies the tool and arguments that a question is about: a decision about other arguments does not count. */
export function digestOfCall({ name, arguments: args }: ToolCall): string {
  return createHash("sha256")
    .update(JSON.stringify([name, args]))
    .digest("base64");
}

/** The recorded question about a call. */
export interface AskedBefore {
  /** The id of the question; null if it must be asked again. */
  readonly question: string | null;
  readonly decision: ApprovalDecision | null;
  /** Denied because the question expired; this is not recorded yet. */
  readonly expired?: true;
}

/** The recorded state of an interrupted run. */
export interface ResumeState {
  /** The session, and the length of its log when this was read. */
  readonly sessionId: string;
  readonly version: number;
  /** The interrupted run, if it has not ended; the next run in the session continues it. */
  readonly runId: string | null;
  /** The folded state of that run; if none is open, of a new run with what the last one left. */
  readonly run: RunState;
  /**
   * Whether the calls without a result were inherited from a fork or an import, belong to another run, or were appended
   * without a run: they never run here.
   */
  readonly inherited: boolean;
  /** Whether the run had given its last answer, and only its end is not recorded. */
  readonly answered: boolean;
  /** The names of the tools that the run had at its last answer; null if the log does not record them. */
  readonly tools: readonly string[] | null;
  /** Calls without a result that may have had their effect, by position in the last answer. */
  readonly effects: ReadonlySet<number>;
  /** Calls without a result that needed approval, by position in the last answer. */
  readonly approvals: ReadonlyMap<number, AskedBefore>;
  /** Input that was not delivered, in order. */
  readonly queued: readonly QueuedInput[];
  /** Where its tools acted, if that is recorded. */
  readonly sandbox: SandboxPlacement | null;
}

const states = new WeakMap<Transcript, ResumeState>();

/** Attaches to a transcript how the run that wrote it stopped. */
export function setResumeState(transcript: Transcript, state: ResumeState): void {
  states.set(transcript, state);
}

/** How the run that wrote a transcript stopped, if `resumeSession` attached it. */
export function resumeStateOf(transcript: Transcript): ResumeState | null {
  return states.get(transcript) ?? null;
}

const givenPrompts = new WeakSet<Session>();

/** Notes with an agent's session that its instructions were given in place of those on record. */
export function setGivenPrompt(agent: Session): void {
  givenPrompts.add(agent);
}

/** Whether the instructions were given in place of those on record. */
export function hasGivenPrompt(agent: Session): boolean {
  return givenPrompts.has(agent);
}

/** Discards approvals of open calls, so that they are asked again. Denials are kept. */
export function forgetConsent(transcript: Transcript): void {
  const state = resumeStateOf(transcript);
  if (state === null) return;
  const anew: AskedBefore = { question: null, decision: null };
  const approvals = [...state.approvals].map(
    ([id, word]) => [id, word.decision?.approved === true ? anew : word] as const,
  );
  setResumeState(transcript, { ...state, approvals: new Map(approvals) });
}
