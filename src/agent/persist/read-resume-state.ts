import type { Entry, EntryOf } from "../../session/entry.ts";
import { isOwn, type SessionHead } from "../../session/fold.ts";
import type { SandboxPlacement, SessionHeader } from "../../session/header.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Transcript } from "../../session/transcript.ts";
import {
  type ApprovalDecision,
  type AskedBefore,
  decisionOf,
  QUEUED_KEY,
  type QueuedInput,
  type ResumeState,
} from "../resume-state.ts";

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
  const answer = entries.find(({ id }) => id === last?.id) ?? null;
  const scan = new Scan(last?.openCalls ?? new Set(), answer, entries, head);
  if (entries.length > 0) {
    for await (const entry of store.read(head.header.id, { reverse: true })) {
      if (scan.isDoneBefore(entry)) break;
      scan.take(entry);
    }
  }
  const runId = head.openRuns.findLast(({ state }) => state !== "requested")?.runId ?? null;
  return { sessionId: head.header.id, version: head.version, runId, ...scan.state() };
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
  readonly #header: SessionHeader;
  /** Whether the last answer, and so its calls, came from another session. */
  readonly #foreign: boolean;
  /** Whether a run has begun and not ended; it may have done so several times. */
  readonly #isOpen: boolean;
  readonly #effects = new Set<string>();
  /** The questions about each call, the latest first. */
  readonly #questions = new Map<string, string[]>();
  /** What was answered, by question, and in old logs by call. */
  readonly #answers = new Map<string, ApprovalDecision>();
  readonly #wordsOn = new Map<string, ApprovalDecision>();
  readonly #delivered = new Set<string>();
  readonly #queued: QueuedInput[] = [];
  #parked: EntryOf<"run_parked"> | null = null;
  #sandbox: SandboxPlacement | null = null;
  #runIsOver = false;

  constructor(
    openCalls: ReadonlySet<string>,
    answer: Entry | null,
    context: readonly Entry[],
    { header, openRuns }: SessionHead,
  ) {
    this.#openCalls = openCalls;
    this.#answerSeq = answer !== null && openCalls.size > 0 ? answer.seq : Number.POSITIVE_INFINITY;
    this.#foreign = openCalls.size > 0 && answer !== null && !isOwn(header, answer, answer.seq);
    this.#contextIds = new Set([null, ...context.map(({ id }) => id)]);
    this.#contextSeq = context[0]?.seq ?? 0;
    this.#isOpen = openRuns.some(({ state }) => state !== "requested");
    this.#header = header;
  }

  /** Whether nothing that counts stands at that entry or before it. */
  isDoneBefore({ seq }: Entry): boolean {
    if (seq >= this.#answerSeq) return false;
    return this.#runIsOver || (seq < this.#contextSeq && !this.#isOpen);
  }

  take(entry: Entry): void {
    // Facts of a run hang on its own last node, so that those of another branch are told apart.
    const mine = this.#contextIds.has(entry.parentId) || entry.seq < this.#contextSeq;
    const own = isOwn(this.#header, entry, entry.seq);
    switch (entry.type) {
      case "run":
        this.#takeRun(entry);
        break;
      case "run_parked":
        if (own) this.#parked ??= entry;
        break;
      case "message": {
        const id = entry.message.metadata?.[QUEUED_KEY];
        if (typeof id === "string") this.#delivered.add(id);
        break;
      }
      case "queued":
        if (mine && own && !this.#runIsOver) this.#queued.push(entry);
        break;
      case "effect":
        if (mine && own && this.#isAboutOpenCall(entry)) this.#effects.add(entry.callId);
        break;
      case "approval":
        if (mine && own && this.#isAboutOpenCall(entry)) this.#takeApproval(entry);
        break;
      default:
        break;
    }
  }

  state(): Omit<ResumeState, "sessionId" | "version" | "runId"> {
    const queued = this.#queued
      .filter(({ id }) => !this.#delivered.has(id))
      .map(({ id, kind, content }) => ({ id, kind, content }))
      .reverse();
    const sandbox = this.#sandbox;
    if (this.#foreign) return { inherited: true, effects: this.#openCalls, approvals: new Map(), queued, sandbox };
    const asked = [...this.#questions.keys(), ...this.#wordsOn.keys()];
    const approvals = new Map(asked.map((callId) => [callId, this.#askedAbout(callId)]));
    return { inherited: false, effects: this.#effects, approvals, queued, sandbox };
  }

  /** Some models count their calls anew in every answer, so only what came after the last one is about its calls. */
  #isAboutOpenCall({ seq, callId }: { readonly seq: number; readonly callId: string }): boolean {
    return seq > this.#answerSeq && this.#openCalls.has(callId);
  }

  /** A run that was ended on purpose has done with its input; one that failed or died has not. */
  #takeRun({ seq, inherited, phase, sandbox }: EntryOf<"run">): void {
    // An import cannot say where tools act.
    const imported = inherited === true || seq < (this.#header.inherited?.entries ?? 0);
    if (!imported) this.#sandbox ??= sandbox ?? null;
    if (phase === "finished" || phase === "cancelled") this.#runIsOver = true;
  }

  /** Of several answers to a question, the first in the log counts; of old ones, which name a call only, the latest. */
  #takeApproval({ id, callId, decision, question, note }: EntryOf<"approval">): void {
    if (decision === undefined) this.#questions.set(callId, [...(this.#questions.get(callId) ?? []), id]);
    else if (question !== undefined) this.#answers.set(question, decisionOf(decision, note));
    else if (!this.#wordsOn.has(callId)) this.#wordsOn.set(callId, decisionOf(decision));
  }

  #askedAbout(callId: string): AskedBefore {
    const question = this.#questions.get(callId)?.[0] ?? null;
    const decision = this.#answers.get(question ?? "") ?? this.#wordsOn.get(callId) ?? null;
    if (decision !== null || question === null) return { question, decision };
    const { expiresAt = null, questions = [] } = this.#parked ?? {};
    const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
    if (!expired || !questions.some((open) => open.question === question)) return { question, decision };
    return { question, decision: { approved: false, reason: "Nobody answered in time." }, expired };
  }
}
