import { defined } from "../../internal/defined.ts";
import { isInnerQuestion } from "../../session/log/open-runs.ts";
import { type Entry, type EntryOf, isNode } from "../../session/log/entry.ts";
import { inheritedCount, isOwn, type SessionHead } from "../../session/log/fold.ts";
import type { SandboxPlacement, SessionHeader } from "../../session/log/header.ts";
import type { ToolCall } from "../../session/message.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Row, Transcript } from "../../session/value/transcript.ts";
import { isTaken } from "../output/run-output.ts";
import {
  type ApprovalDecision,
  type AskedBefore,
  decisionOf,
  digestOfCall,
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
  const scan = new Scan(last?.openCalls ?? new Map(), answer, { context: entries, head, runId });
  if (entries.length > 0) {
    for await (const entry of store.read(head.header.id, { reverse: true })) {
      if (scan.isDoneBefore(entry)) break;
      scan.take(entry);
    }
  }
  return {
    sessionId: head.header.id,
    version: head.version,
    runId,
    ...scan.state(),
    answered: last?.isLast === true && scan.isAnswerOf(runId),
  };
}

/** The last answer of a model, those of its calls that have no result, and whether it was the last that its run needed. */
function lastAnswer(
  transcript: Transcript,
): { readonly id: string; readonly openCalls: ReadonlyMap<number, ToolCall>; readonly isLast: boolean } | null {
  const answered = new Set<string>();
  let [given, followed] = [false, false];
  for (let index = transcript.length - 1; index >= 0; index--) {
    const { id, message } = transcript.at(index) as Row;
    if (message.role === "tool") {
      answered.add(message.toolCallId);
      given ||= isTaken(message);
    } else if (message.role !== "assistant") followed = true;
    else {
      const { toolCalls = [], stopReason = "stop" } = message;
      const isWhole = given || (toolCalls.length === 0 && stopReason === "stop");
      const open = [...toolCalls.entries()].filter(([, call]) => !answered.has(call.id));
      return { id, openCalls: new Map(open), isLast: isWhole && !followed };
    }
  }
  return null;
}

/** Collects, latest entry first, what a log says about the open calls and the input that waits. */
class Scan {
  /** The calls without a result, by their positions in the answer. */
  readonly #openCalls: ReadonlyMap<number, ToolCall>;
  readonly #openIds: ReadonlySet<string>;
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
  /** The run that gave the last answer: the one that had begun and not ended; null where none had. */
  #answeredBy: string | null = null;
  #writerIsKnown = false;
  #tools: readonly string[] | null = null;
  /** How runs ended after the last answer, and where the open run first began after it. */
  readonly #ends = new Map<string, EntryOf<"run">["phase"]>();
  #begunSeq: number | null = null;
  #parked: EntryOf<"run_parked"> | null = null;
  #sandbox: SandboxPlacement | null = null;
  #runIsOver = false;

  constructor(
    openCalls: ReadonlyMap<number, ToolCall>,
    answer: Entry | null,
    { context, head: { header }, runId }: { context: readonly Entry[]; head: SessionHead; runId: string | null },
  ) {
    this.#openCalls = openCalls;
    this.#openIds = new Set([...openCalls.values()].map(({ id }) => id));
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
    if (this.#mustFindWriter && seq >= inheritedCount(this.#header)) return false;
    return this.#runIsOver || (seq < this.#contextSeq && this.#runId === null);
  }

  /**
   * Whether it is open whose calls they are, which the last word on a run before the answer says. Where no run is open and
   * none has ended since, none had begun at the answer.
   */
  get #mustFindWriter(): boolean {
    return this.#openCalls.size > 0 && !this.#writerIsKnown && (this.#runId !== null || this.#ends.size > 0);
  }

  take(entry: Entry): void {
    const own = isOwn(this.#header, entry, entry.seq);
    if (isNode(entry) && entry.seq > this.#answerSeq) this.#nodes.push(entry);
    switch (entry.type) {
      case "run":
        this.#takeRun(entry, own);
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
      .map(({ id, kind, content, by }) => ({ id, kind, content, ...defined({ by }) }))
      .reverse();
    const [sandbox, tools] = [this.#sandbox, this.#tools];
    if (this.#foreign || !this.#callsAreOwn())
      return {
        inherited: true,
        tools,
        effects: new Set(this.#openCalls.keys()),
        approvals: new Map(),
        queued,
        sandbox,
      };
    const below = this.#nodesOfAnswer();
    const begun = this.#effects.filter(({ parentId }) => below.has(parentId));
    const questions = this.#questions.filter(({ parentId }) => below.has(parentId));
    const effects = new Set<number>();
    const approvals = new Map<number, AskedBefore>();
    for (const [index, call] of this.#openCalls) {
      if (begun.some((effect) => (effect.index ?? index) === index && effect.callId === call.id)) effects.add(index);
      const asked = this.#askedAbout(index, call, questions);
      if (asked !== null) approvals.set(index, asked);
    }
    return { inherited: false, tools, effects, approvals, queued, sandbox };
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
   * Whether the open calls are those of the run that is open, or of one that failed and is gone on with. While a run has
   * begun, only its holder can append an answer with calls; one that was appended at any other time says what its writer
   * likes. Whoever said something since then wanted another run, and what a run was stopped in stays undone.
   */
  #callsAreOwn(): boolean {
    const [by, begunSeq] = [this.#answeredBy, this.#begunSeq];
    if (by === null) return this.#openCalls.size === 0;
    if (by === this.#runId || begunSeq === null) return true;
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
    return seq > this.#answerSeq && this.#openIds.has(callId);
  }

  /** A run that was ended on purpose has done with its input; one that failed or died has not. */
  #takeRun({ seq, inherited, runId, phase, sandbox, tools }: EntryOf<"run">, own: boolean): void {
    // An import cannot say where tools act.
    const imported = inherited === true || seq < (this.#header.inherited?.entries ?? 0);
    if (!imported) this.#sandbox ??= sandbox ?? null;
    if (phase === "finished" || phase === "cancelled") this.#runIsOver = true;
    const isBefore = this.#answer !== null && seq < this.#answer.seq;
    if (phase !== "started") this.#ends.set(runId, phase);
    else if (!isBefore && runId === this.#runId) this.#begunSeq = seq;
    // Where the tools act is told with a start of its own, which says nothing about who answers.
    if (!isBefore || !own || this.#writerIsKnown || (phase === "started" && sandbox !== undefined)) return;
    this.#writerIsKnown = true;
    this.#tools = tools ?? null;
    this.#answeredBy = phase === "started" ? runId : null;
  }

  /** Of several answers to a question, the first in the log counts; of old ones, which name a call only, the latest. */
  #takeApproval(entry: EntryOf<"approval">): void {
    const { callId, parentId, decision, question } = entry;
    // Of a run inside of a tool, which is gone, and whose calls may have the ids of this run's.
    if (isInnerQuestion(entry)) return;
    if (decision === undefined) this.#questions.push(entry);
    else if (question !== undefined) this.#answers.set(question, decisionOf(decision, entry));
    else if (!this.#wordsOn.has(callId) && this.#contextIds.has(parentId))
      this.#wordsOn.set(callId, decisionOf(decision, entry));
  }

  /**
   * What was asked about the call at a position of the answer, and what came of it. A question names its call by position
   * and digest. One of an earlier version names an id only: where several calls have that id, it may deny them all, and
   * allows none. `questions` are the latest first.
   */
  #askedAbout(index: number, call: ToolCall, questions: readonly EntryOf<"approval">[]): AskedBefore | null {
    const digest = digestOfCall(call);
    const about = questions.filter(({ callId }) => callId === call.id);
    const isUnique = this.#callsNamed(call.id) === 1;
    for (const { id: question, index: position, digest: asked } of about) {
      if (position === undefined ? isUnique : position === index && asked === digest)
        return this.#withDecision(question, this.#answers.get(question) ?? this.#wordsOn.get(call.id) ?? null);
    }
    const words = [
      ...about.filter((each) => each.index === undefined).map(({ id }) => this.#answers.get(id)),
      this.#wordsOn.get(call.id),
    ];
    const word = words.find((each) => each !== undefined && (isUnique || !each.approved));
    return word === undefined ? null : { question: null, decision: word };
  }

  #callsNamed(callId: string): number {
    const message = this.#answer?.type === "message" ? this.#answer.message : null;
    const calls = message?.role === "assistant" ? (message.toolCalls ?? []) : [];
    return calls.filter(({ id }) => id === callId).length;
  }

  #withDecision(question: string, decision: ApprovalDecision | null): AskedBefore {
    if (decision !== null) return { question, decision };
    const { expiresAt = null, questions: waiting = [] } = this.#parked ?? {};
    const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
    if (!expired || !waiting.some((open) => open.question === question)) return { question, decision };
    return { question, decision: { approved: false, reason: "Nobody answered in time." }, expired };
  }
}
