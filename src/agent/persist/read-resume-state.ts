import type { JsonValue } from "../../internal/json.ts";
import type { Entry, EntryOf } from "../../session/entry.ts";
import { inheritedCount, type SessionHead } from "../../session/fold.ts";
import type { SandboxPlacement } from "../../session/header.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Transcript } from "../../session/transcript.ts";
import { type ApprovalDecision, QUEUED_KEY, type QueuedInput, type ResumeState } from "../resume-state.ts";

/**
 * How the run that wrote a session's last rows stopped. Reads the log backward, as far as that run goes and the last
 * answer stands; `entries` are those of the context.
 *
 * What came with a fork or an import is another's. The run that a fork was made in may go on in its source, and an import
 * says what it likes: input that waits there is not delivered, what was approved there does not count, and calls that are
 * open there never run here, whatever has started since.
 */
export async function readResumeState(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
  entries: readonly Entry[],
): Promise<ResumeState> {
  const last = lastAnswer(transcript);
  const answerSeq = entries.find(({ id }) => id === last?.id)?.seq ?? null;
  const scan = new Scan(last?.openCalls ?? new Set(), answerSeq, entries, head);
  if (entries.length > 0) {
    for await (const entry of store.read(head.header.id, { reverse: true })) {
      if (scan.isDoneBefore(entry)) break;
      scan.take(entry);
    }
  }
  return { sessionId: head.header.id, version: head.version, ...scan.state() };
}

/** The last answer of a model, and those of its calls that have no result. */
function lastAnswer(transcript: Transcript): { readonly id: string; readonly openCalls: ReadonlySet<string> } | null {
  const answered = new Set<string>();
  for (let index = transcript.length - 1; index >= 0; index--) {
    const row = transcript.at(index);
    if (row?.message.role === "tool") answered.add(row.message.toolCallId);
    if (row?.message.role !== "assistant") continue;
    const calls = (row.message.toolCalls ?? []).map(({ id }) => id);
    return { id: row.id, openCalls: new Set(calls.filter((id) => !answered.has(id))) };
  }
  return null;
}

/** Collects, latest entry first, what a log says about the open calls and the input that waits. */
class Scan {
  readonly #openCalls: ReadonlySet<string>;
  readonly #answerSeq: number;
  readonly #contextIds: ReadonlySet<string | null>;
  readonly #contextSeq: number;
  readonly #openRuns: Set<string>;
  /** How many of the first entries are another session's. */
  readonly #inherited: number;
  /** How many of the first entries came with an import, which cannot say where tools act. */
  readonly #imported: number;
  readonly #effects = new Set<string>();
  readonly #approvals = new Map<string, ApprovalDecision | null>();
  readonly #delivered = new Set<string>();
  readonly #queued: QueuedInput[] = [];
  #sandbox: SandboxPlacement | null = null;
  #runIsOver = false;

  constructor(
    openCalls: ReadonlySet<string>,
    answerSeq: number | null,
    context: readonly Entry[],
    { header, openRuns }: SessionHead,
  ) {
    this.#openCalls = openCalls;
    this.#answerSeq = answerSeq !== null && openCalls.size > 0 ? answerSeq : Number.POSITIVE_INFINITY;
    this.#contextIds = new Set([null, ...context.map(({ id }) => id)]);
    this.#contextSeq = context[0]?.seq ?? 0;
    this.#openRuns = new Set(openRuns.flatMap(({ runId, state }) => (state === "requested" ? [] : runId)));
    this.#inherited = inheritedCount(header);
    this.#imported = header.inherited?.entries ?? 0;
  }

  /** Whether nothing that counts stands at that entry or before it. */
  isDoneBefore({ seq }: Entry): boolean {
    if (seq >= this.#answerSeq) return false;
    return this.#runIsOver || (seq < this.#contextSeq && this.#openRuns.size === 0);
  }

  take(entry: Entry): void {
    // Facts of a run hang on its own last node, so that those of another branch are told apart.
    const mine = this.#contextIds.has(entry.parentId) || entry.seq < this.#contextSeq;
    switch (entry.type) {
      case "run":
        this.#takeRun(entry);
        break;
      case "message": {
        const id = entry.message.metadata?.[QUEUED_KEY];
        if (typeof id === "string") this.#delivered.add(id);
        break;
      }
      case "queued":
        if (mine && !this.#runIsOver && entry.seq >= this.#inherited) this.#queued.push(entry);
        break;
      case "effect":
        if (mine && this.#isOpen(entry)) this.#effects.add(entry.callId);
        break;
      case "approval":
        if (mine && this.#isOpen(entry)) this.#takeApproval(entry.callId, entry.decision);
        break;
      default:
        break;
    }
  }

  state(): Omit<ResumeState, "sessionId" | "version"> {
    const queued = this.#queued
      .filter(({ id }) => !this.#delivered.has(id))
      .map(({ id, kind, content }) => ({ id, kind, content }))
      .reverse();
    const sandbox = this.#sandbox;
    if (this.#answerSeq < this.#inherited) {
      return { inherited: true, effects: this.#openCalls, approvals: new Map(), queued, sandbox };
    }
    return { inherited: false, effects: this.#effects, approvals: this.#approvals, queued, sandbox };
  }

  /** Some models count their calls anew in every answer, so only what came after the last one is about its calls. */
  #isOpen({ seq, callId }: { readonly seq: number; readonly callId: string }): boolean {
    return seq > this.#answerSeq && this.#openCalls.has(callId);
  }

  /** A run that was ended on purpose has done with its input; one that failed or died has not. */
  #takeRun({ seq, runId, phase, sandbox }: EntryOf<"run">): void {
    if (seq >= this.#imported) this.#sandbox ??= sandbox ?? null;
    if (phase === "started" && sandbox === undefined) this.#openRuns.delete(runId);
    if (phase === "finished" || phase === "cancelled") this.#runIsOver = true;
  }

  /** The latest decision counts; having been asked again does not take it back. */
  #takeApproval(callId: string, decision: JsonValue | undefined): void {
    if ((this.#approvals.get(callId) ?? null) !== null) return;
    this.#approvals.set(callId, decision === undefined ? null : decisionOf(decision));
  }
}

/** Only a clear yes lets a call run. */
function decisionOf(decision: JsonValue): ApprovalDecision {
  const given = (typeof decision === "object" && decision !== null ? decision : {}) as Record<string, unknown>;
  if (given.approved === true) return { approved: true };
  return { approved: false, reason: typeof given.reason === "string" ? given.reason : null };
}
