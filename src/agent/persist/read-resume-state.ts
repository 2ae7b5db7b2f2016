import { type Entry, type EntryOf, isNode } from "../../session/log/entry.ts";
import { isOwn, type SessionHead } from "../../session/log/fold.ts";
import type { SandboxPlacement, SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Transcript } from "../../session/value/transcript.ts";
import {
  type ApprovalDecision,
  type AskedBefore,
  decisionOf,
  QUEUED_KEY,
  type QueuedInput,
  type ResumeState,
} from "./resume-state.ts";

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
  const runId = head.openRuns.findLast(({ state }) => state !== "requested")?.runId ?? null;
  const scan = new Scan(last?.openCalls ?? new Set(), answer, { context: entries, head, runId });
  if (entries.length > 0) {
    for await (const entry of store.read(head.header.id, { reverse: true })) {
      if (scan.isDoneBefore(entry)) break;
      scan.take(entry);
    }
  }
  const isLast = last?.isWhole === true && transcript.at(-1)?.id === last.id;
  return {
    sessionId: head.header.id,
    version: head.version,
    runId,
    ...scan.state(),
    answered: isLast && scan.isAnswerOf(runId),
  };
}

/** The last answer of a model, those of its calls that have no result, and whether it called nothing and was not cut. */
function lastAnswer(
  transcript: Transcript,
): { readonly id: string; readonly openCalls: ReadonlySet<string>; readonly isWhole: boolean } | null {
  const answered = new Set<string>();
  for (let index = transcript.length - 1; index >= 0; index--) {
    const row = transcript.at(index);
    if (row?.message.role === "tool") answered.add(row.message.toolCallId);
    if (row?.message.role !== "assistant") continue;
    const { toolCalls = [], stopReason = "stop" } = row.message;
    const calls = toolCalls.map(({ id }) => id);
    const isWhole = calls.length === 0 && stopReason === "stop";
    return { id: row.id, openCalls: new Set(calls.filter((id) => !answered.has(id))), isWhole };
  }
  return null;
}

/** Collects, latest entry first, what a log says about the open calls and the input that waits. */
class Scan {
  readonly #openCalls: ReadonlySet<string>;
  readonly #answer: Entry | null;
  readonly #answerSeq: number;
  /** The run that is open, and has begun. */
  readonly #runId: string | null;
  readonly #contextIds: ReadonlySet<string | null>;
  readonly #contextSeq: number;
  readonly #header: SessionHeader;
  /** Whether the last answer, and so its calls, came from another session. */
  readonly #foreign: boolean;
  /** What came after the last answer, on whichever branch: nodes, and what was said about calls of that name. */
  readonly #nodes: Entry[] = [];
  readonly #effects: EntryOf<"effect">[] = [];
  readonly #questions: EntryOf<"approval">[] = [];
  /** What was answered, by question, and in old logs by call. */
  readonly #answers = new Map<string, ApprovalDecision>();
  readonly #wordsOn = new Map<string, ApprovalDecision>();
  readonly #delivered = new Set<string>();
  readonly #queued: QueuedInput[] = [];
  /** The run that gave the last answer. */
  #answeredBy: string | null = null;
  /** How runs ended after the last answer, and where the open run first began after it. */
  readonly #ends = new Map<string, EntryOf<"run">["phase"]>();
  #begunSeq: number | null = null;
  #parked: EntryOf<"run_parked"> | null = null;
  #sandbox: SandboxPlacement | null = null;
  #runIsOver = false;

  constructor(
    openCalls: ReadonlySet<string>,
    answer: Entry | null,
    { context, head: { header }, runId }: { context: readonly Entry[]; head: SessionHead; runId: string | null },
  ) {
    this.#openCalls = openCalls;
    this.#answer = answer;
    this.#runId = runId;
    this.#answerSeq = answer !== null && openCalls.size > 0 ? answer.seq : Number.POSITIVE_INFINITY;
    this.#foreign = openCalls.size > 0 && answer !== null && !isOwn(header, answer, answer.seq);
    this.#contextIds = new Set([null, ...context.map(({ id }) => id)]);
    this.#contextSeq = context[0]?.seq ?? 0;
    this.#header = header;
  }

  /** Whether nothing that counts stands at that entry or before it. */
  isDoneBefore({ seq }: Entry): boolean {
    if (seq >= this.#answerSeq) return false;
    if (this.#runId !== null && this.#answeredBy === null && this.#openCalls.size > 0) return false;
    return this.#runIsOver || (seq < this.#contextSeq && this.#runId === null);
  }

  take(entry: Entry): void {
    const own = isOwn(this.#header, entry, entry.seq);
    if (isNode(entry) && entry.seq > this.#answerSeq) this.#nodes.push(entry);
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
        if (own && !this.#runIsOver && this.#isForRun(entry)) this.#queued.push(entry);
        break;
      case "effect":
        if (own && this.#isAboutOpenCall(entry)) this.#effects.push(entry);
        break;
      case "approval":
        if (own && this.#isAboutOpenCall(entry)) this.#takeApproval(entry);
        break;
      default:
        break;
    }
  }

  /** Whether the last answer was given by that run. */
  isAnswerOf(runId: string | null): boolean {
    return runId !== null && this.#answeredBy === runId;
  }

  state(): Omit<ResumeState, "sessionId" | "version" | "runId" | "answered"> {
    const queued = this.#queued
      .filter(({ id }) => !this.#delivered.has(id))
      .map(({ id, kind, content }) => ({ id, kind, content }))
      .reverse();
    const sandbox = this.#sandbox;
    if (this.#foreign || !this.#callsAreOwn())
      return { inherited: true, effects: this.#openCalls, approvals: new Map(), queued, sandbox };
    const below = this.#nodesOfAnswer();
    const effects = new Set(this.#effects.filter(({ parentId }) => below.has(parentId)).map(({ callId }) => callId));
    const questions = this.#questions.filter(({ parentId }) => below.has(parentId));
    const asked = [...questions.map(({ callId }) => callId), ...this.#wordsOn.keys()];
    const approvals = new Map(asked.map((callId) => [callId, this.#askedAbout(callId, questions)]));
    return { inherited: false, effects, approvals, queued, sandbox };
  }

  /**
   * The last answer and what hangs on it up to the next one, on every branch: what was done about its calls stays done when
   * someone moves the leaf back.
   */
  #nodesOfAnswer(): ReadonlySet<string | null> {
    const below = new Set<string | null>([this.#answer?.id ?? null]);
    for (const node of this.#nodes.toReversed()) {
      const answers = node.type === "message" && node.message.role === "assistant";
      if (!answers && below.has(node.parentId)) below.add(node.id);
    }
    return below;
  }

  /**
   * Whether the open calls are those of the run that is open, or of one that failed and is gone on with. Whoever said
   * something since then wanted another run, and what a run was stopped in stays undone.
   */
  #callsAreOwn(): boolean {
    const [by, begunSeq] = [this.#answeredBy, this.#begunSeq];
    if (by === null || by === this.#runId || begunSeq === null) return true;
    const said = this.#nodes.some(
      (node) =>
        node.seq < begunSeq && this.#contextIds.has(node.id) && node.type === "message" && node.message.role === "user",
    );
    return !said && this.#ends.get(by) === "failed";
  }

  /** Input names its run; a run that was recovered by an earlier version had another id, and its facts hang on its rows. */
  #isForRun({ runId, parentId, seq }: EntryOf<"queued">): boolean {
    return runId === this.#runId || this.#contextIds.has(parentId) || seq < this.#contextSeq;
  }

  /** Some models count their calls anew in every answer, so only what came after the last one is about its calls. */
  #isAboutOpenCall({ seq, callId }: { readonly seq: number; readonly callId: string }): boolean {
    return seq > this.#answerSeq && this.#openCalls.has(callId);
  }

  /** A run that was ended on purpose has done with its input; one that failed or died has not. */
  #takeRun({ seq, inherited, runId, phase, sandbox }: EntryOf<"run">): void {
    // An import cannot say where tools act.
    const imported = inherited === true || seq < (this.#header.inherited?.entries ?? 0);
    if (!imported) this.#sandbox ??= sandbox ?? null;
    if (phase === "finished" || phase === "cancelled") this.#runIsOver = true;
    if (phase !== "started") this.#ends.set(runId, phase);
    else if (this.#answer !== null && seq < this.#answer.seq) this.#answeredBy ??= runId;
    else if (runId === this.#runId) this.#begunSeq = seq;
  }

  /** Of several answers to a question, the first in the log counts; of old ones, which name a call only, the latest. */
  #takeApproval(entry: EntryOf<"approval">): void {
    const { callId, parentId, decision, question, note } = entry;
    if (decision === undefined) this.#questions.push(entry);
    else if (question !== undefined) this.#answers.set(question, decisionOf(decision, note));
    else if (!this.#wordsOn.has(callId) && this.#contextIds.has(parentId))
      this.#wordsOn.set(callId, decisionOf(decision));
  }

  /** `questions` are the latest first. */
  #askedAbout(callId: string, questions: readonly EntryOf<"approval">[]): AskedBefore {
    const question = questions.find((asked) => asked.callId === callId)?.id ?? null;
    const decision = this.#answers.get(question ?? "") ?? this.#wordsOn.get(callId) ?? null;
    if (decision !== null || question === null) return { question, decision };
    const { expiresAt = null, questions: waiting = [] } = this.#parked ?? {};
    const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
    if (!expired || !waiting.some((open) => open.question === question)) return { question, decision };
    return { question, decision: { approved: false, reason: "Nobody answered in time." }, expired };
  }
}
