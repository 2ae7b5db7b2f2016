import { sameJson } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import { inheritedCount, isOwn, type SessionHead } from "../../session/log/fold.ts";
import { isPlaceOnly, type OpenRun } from "../../session/log/open-runs.ts";
import {
  type AnswerState,
  type AskedCall,
  afterRun,
  hasBegun,
  newRun,
  type RunState,
  RunsFold,
} from "../../session/log/run-fold.ts";
import type { Message, ToolCall } from "../../session/message.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Row, Transcript } from "../../session/value/transcript.ts";
import { entriesBetween } from "../../tree/path-reader.ts";
import { isTaken } from "../output/run-output.ts";
import { type ApprovalDecision, type AskedBefore, decisionOf, digestOfCall, type ResumeState } from "./resume-state.ts";

/** What was read for the context of a session. */
export interface ReadContext {
  /** The entries of the context. */
  readonly entries: readonly Entry[];
  /** All entries that were read for it, on every branch, the latest first. */
  readonly passed?: readonly Entry[];
}

/**
 * How the run that wrote a session's last rows stopped. Folds the entries of that run and, if it failed, those of the
 * failed runs before it. What was read for the context is not read again.
 */
export async function readResumeState(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
  { entries, passed = [] }: ReadContext,
): Promise<ResumeState> {
  const open = head.openRuns.findLast(hasBegun) ?? null;
  const last = lastAnswer(transcript);
  const fold = new RunsFold(head.header, last?.id ?? null);
  if (entries.length > 0) await foldLastRuns(store, head, fold, { open, entries, passed, answer: last });
  const run = open === null ? afterRun(newRun(""), fold.last) : (fold.states.get(open.runId) ?? newRun(open.runId));
  // The new run takes over the open calls and the input of the last run, even if that finished, because the caller explicitly resumes it.
  const answer = open === null ? fold.last.answer : run.answer;
  const calls = last?.openCalls ?? new Map<number, ToolCall>();
  const own = answer !== null && answer.id === last?.id && hasCalls(answer, calls) ? answer : null;
  return {
    sessionId: head.header.id,
    version: head.version,
    runId: open?.runId ?? null,
    run,
    queued: run.queued,
    sandbox: run.sandbox,
    tools: own?.tools ?? null,
    answered: last?.isLast === true && own !== null && open !== null && own.tools === run.answer?.tools,
    ...(own === null || calls.size === 0
      ? { inherited: calls.size > 0, effects: new Set(calls.keys()), approvals: new Map() }
      : { inherited: false, ...callsOf(own, calls, run, new Set(entries.map(({ id }) => id))) }),
  };
}

/**
 * Whether the calls are those of the recorded answer. A user may have edited the answer in the context; calls that a
 * user wrote must never run.
 */
function hasCalls({ calls: recorded }: AnswerState, calls: ReadonlyMap<number, ToolCall>): boolean {
  return recorded.length === 0 || [...calls].every(([index, call]) => sameJson(call, recorded[index] ?? null));
}

/**
 * Folds the last runs of a session, starting with the first entry of the open run, or of the failed runs before it. Ends at the
 * version of the head: the resumed run folds later entries itself, and must not fold them twice.
 */
async function foldLastRuns(
  store: SessionStore,
  { header, version }: SessionHead,
  fold: RunsFold,
  {
    open,
    entries,
    passed: read,
    answer,
  }: Required<ReadContext> & { readonly open: OpenRun | null; readonly answer: LastAnswer | null },
): Promise<void> {
  const first = open?.first;
  const contextSeq = entries[0]?.seq ?? 0;
  const answerSeq = entries.find(({ id }) => id === answer?.id)?.seq ?? Number.POSITIVE_INFINITY;
  const needsWriter = answer !== null && answer.openCalls.size > 0;
  const passed: Entry[] = [];
  let [isOver, hasWriter, hasEnd] = [false, false, false];
  for await (const entry of store.read(header.id, { reverse: true, before: first ?? version })) {
    const isBeforeContext = entry.seq < contextSeq && (open === null || first !== undefined);
    const hasAnswer = entry.seq < answerSeq || answerSeq === Number.POSITIVE_INFINITY;
    // If no run is open and none has ended since, no run was in progress when the answer was appended.
    const lacksWriter =
      needsWriter &&
      !hasWriter &&
      (open !== null || hasEnd) &&
      entry.seq >= inheritedCount(header) &&
      (first === undefined || first > answerSeq);
    if (hasAnswer && !lacksWriter && (isOver || isBeforeContext)) break;
    passed.push(withoutText(entry));
    if (entry.type !== "run" || !isOwn(header, entry, entry.seq)) continue;
    if (entry.phase !== "started") hasEnd = true;
    if (entry.phase === "finished" || entry.phase === "cancelled") isOver = true;
    if (entry.phase === "started" && !isPlaceOnly(entry) && entry.seq < answerSeq) hasWriter = true;
  }
  for (const entry of passed.reverse()) fold.take(entry);
  if (first === undefined) return;
  const known = entriesBetween(read, first, version);
  if (known !== null) for (const entry of known) fold.take(entry);
  else for await (const entry of store.read(header.id, { after: first - 1, before: version })) fold.take(entry);
}

/** An entry without its text, to keep memory small: many rounds of a run may be folded. */
function withoutText(entry: Entry): Entry {
  if (entry.type === "message") return { ...entry, message: { ...entry.message, content: "" } as Message };
  return entry.type === "custom_message" ? { ...entry, content: "" } : entry;
}

/** The last answer of a transcript. */
interface LastAnswer {
  readonly id: string;
  /** The calls without a result, by position in the answer. */
  readonly openCalls: ReadonlyMap<number, ToolCall>;
  /** Whether the answer was the last that its run needed. */
  readonly isLast: boolean;
}

function lastAnswer(transcript: Transcript): LastAnswer | null {
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

/** The recorded state of the open calls of an answer. */
function callsOf(
  answer: AnswerState,
  calls: ReadonlyMap<number, ToolCall>,
  run: RunState,
  contextIds: ReadonlySet<string | null>,
): Pick<ResumeState, "effects" | "approvals"> {
  const effects = new Set<number>();
  const approvals = new Map<number, AskedBefore>();
  for (const [index, call] of calls) {
    if (answer.effects.some((effect) => (effect.index ?? index) === index && effect.callId === call.id))
      effects.add(index);
    const asked = askedAbout(answer, index, call, contextIds);
    if (asked !== null) approvals.set(index, withExpiry(asked, run));
  }
  return { effects, approvals };
}

/**
 * The question about the call at a position of the answer, and its answer. A question names its call by position and
 * digest. One of an earlier version names only an id: if several calls have that id, it can deny them all but approve
 * none.
 */
function askedAbout(
  { asked, calls }: AnswerState,
  index: number,
  call: ToolCall,
  contextIds: ReadonlySet<string | null>,
): AskedBefore | null {
  const digest = digestOfCall(call);
  const about = asked.filter(({ callId }) => callId === call.id).toReversed();
  const isUnique = calls.filter(({ id }) => id === call.id).length === 1;
  // An approval of an earlier version, which names only the call, counts on its own path.
  const word = about.find(({ question, answer }) => question === null && contextIds.has(answer?.parentId ?? null));
  const decisionIn = ({ answer }: AskedCall): ApprovalDecision | null =>
    answer?.decision === undefined ? null : decisionOf(answer.decision, answer);
  for (const each of about) {
    if (each.question === null) continue;
    const isAbout = each.index === undefined ? isUnique : each.index === index && each.digest === digest;
    if (isAbout) return { question: each.question, decision: decisionIn(each) ?? (word ? decisionIn(word) : null) };
  }
  const words = [
    ...about.filter((each) => each.question !== null && each.index === undefined),
    ...(word ? [word] : []),
  ];
  const decision = words.map(decisionIn).find((each) => each !== null && (isUnique || !each.approved)) ?? null;
  return decision === null ? null : { question: null, decision };
}

/** An unanswered question counts as denied once the run's questions have expired. */
function withExpiry(asked: AskedBefore, { parked }: RunState): AskedBefore {
  if (asked.decision !== null || parked?.expiresAt === undefined) return asked;
  const isOpen = parked.questions.some(({ question }) => question === asked.question);
  if (!isOpen || Date.parse(parked.expiresAt) > Date.now()) return asked;
  return { ...asked, decision: { approved: false, reason: "Nobody answered in time." }, expired: true };
}
