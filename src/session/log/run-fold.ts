import { defined } from "../../internal/defined.ts";
import type { JsonValue } from "../../internal/json.ts";
import { type AssistantMessage, type Content, textOf, type ToolCall } from "../message.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../usage.ts";
import { type Entry, type EntryOf, isNode } from "./entry.ts";
import { isImported, isOwn } from "./fold.ts";
import { type GroupState, groupMarkOf, groupOf, stepGroup } from "./group-state.ts";
import type { SandboxPlacement, SessionHeader } from "./header.ts";
import { isInnerQuestion, isPlaceOnly, type OpenRun, stepRuns } from "./open-runs.ts";
import { type Approval, type RecordedEvent, recordedError, type RunError } from "./run-event.ts";

/** A question of a run without an answer. */
export interface OpenQuestion {
  readonly approval: Approval;
  readonly askedAt: string;
  /** When the question counts as denied, once the run has parked. */
  readonly expiresAt?: string;
}

/** The recorded approval of a call of the last answer. */
export interface AskedCall {
  /** The id of the question; null for an approval of an earlier version, which names only the call. */
  readonly question: string | null;
  readonly callId: string;
  /** The position of the call in its answer, and the digest of its tool and arguments. Earlier versions wrote neither. */
  readonly index?: number;
  readonly digest?: string;
  /** The approval or denial, and the node below which it was appended; null until it is given. */
  readonly answer: Pick<EntryOf<"approval">, "decision" | "note" | "by" | "parentId"> | null;
}

/** The last answer of a run, with the recorded progress of its calls. */
export interface AnswerState {
  readonly id: string;
  readonly calls: readonly ToolCall[];
  /** The tools that the run had, by name; null if its start does not record them. */
  readonly tools: readonly string[] | null;
  /** The calls that may have had their effect, as recorded in `effect` entries. */
  readonly effects: readonly Pick<EntryOf<"effect">, "callId" | "index">[];
  readonly asked: readonly AskedCall[];
  /** The answer and the nodes after it up to the next answer, on every branch, latest first. */
  readonly below: NodeList;
  /** Whether a user message follows the answer. */
  readonly followed: boolean;
}

/** A linked list, which grows without being copied. */
interface NodeList {
  readonly id: string;
  readonly next: NodeList | null;
}

/** Input that waits to be delivered to a run; `id` is that of its `queued` entry. */
export interface QueuedInput {
  readonly id: string;
  readonly kind: "steer" | "followUp";
  readonly content: Content;
  /** The user who gave the input; absent if the program did. */
  readonly by?: string;
}

/** The state of a run after some entries of its log. */
export interface RunState {
  readonly runId: string;
  /** The run in the head's index; null before the run's first entry and after its end. */
  readonly open: OpenRun | null;
  readonly request: EntryOf<"run_request"> | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** How it ended; null while it is open. */
  readonly end: "finished" | "failed" | "cancelled" | null;
  /** The token of the lease of the last claim. */
  readonly claim: number;
  /** The agent, model and tools of the last claim. */
  readonly agent: string | null;
  readonly model: string | null;
  readonly tools: readonly string[] | null;
  /** The `setup` entry of its last claim: what its requests contain beside their messages. */
  readonly setup: string | null;
  /** Of a group: the `setup` entries of its agents in this run, by agent. */
  readonly agentSetups: ReadonlyMap<string, string>;
  /** Whether the run's entries name it in `run`. */
  readonly stamped: boolean;
  /** The number of answers over all claims, and how many of these called tools. */
  readonly round: number;
  readonly toolRounds: number;
  /** The usage of the run's answers and compactions over all claims; null if none has a usage. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  readonly answer: AnswerState | null;
  readonly questions: readonly OpenQuestion[];
  readonly parked: EntryOf<"run_parked"> | null;
  /** Input that was not delivered yet, in order. */
  readonly queued: readonly QueuedInput[];
  /** Where the run's tools act. */
  readonly sandbox: SandboxPlacement | null;
  /** The structured output. */
  readonly output: JsonValue | undefined;
  readonly error: RunError | null;
  /** The state of a group, for a group's run. */
  readonly group: GroupState | null;
}

/** A run before its first entry. */
export function newRun(runId: string): RunState {
  return {
    runId,
    open: null,
    request: null,
    startedAt: null,
    endedAt: null,
    end: null,
    claim: 0,
    agent: null,
    model: null,
    tools: null,
    setup: null,
    agentSetups: NO_SETUPS,
    stamped: false,
    round: 0,
    toolRounds: 0,
    usage: null,
    cost: null,
    answer: null,
    questions: NONE,
    parked: null,
    queued: NONE,
    sandbox: null,
    output: undefined,
    error: null,
    group: null,
  };
}

const NONE: readonly never[] = Object.freeze([]);
const NO_SETUPS: ReadonlyMap<string, string> = new Map();

/** The metadata key of a delivered message that holds the id of its `queued` entry. */
export const QUEUED_KEY = "skein.queued";

/** A run after an entry, and the event that the entry records, if any. */
export interface RunStep {
  readonly state: RunState;
  readonly event: RecordedEvent | null;
}

/**
 * The state of a run after the next entry of its session's log. Recovery, views, event streams, front ends and groups
 * all compute the state of a run with this function. It is pure: the same entries give the same state and events in
 * every process.
 *
 * An entry is *the run's* if it names the run in `run`; in logs before format 3, if it was appended while the run was
 * started and names no user. Sources of each field:
 *
 * | field | derived from | never from |
 * |---|---|---|
 * | all fields | the session's own entries, up to the run's end | inherited or imported entries, except for `sandbox` |
 * | `open` | `stepRuns`, the fold of the head's index | |
 * | `request` | the request with the run's id | |
 * | `claim`, `agent`, `model`, `tools`, `setup`, `startedAt` | starts of the run; `startedAt` is the first | a start that only records a sandbox |
 * | `round`, `toolRounds`, `usage`, `cost` | answers of the run, and its compactions, over all claims; of a group only `usage` and `cost`, as its agents count their rounds in `group.turn` | answers that others append in the meantime |
 * | `answer` | the run's last answer; that of a failed predecessor, if no user message follows it | a predecessor that finished or was cancelled |
 * | `answer.effects`, `answer.asked` | effects and questions after the answer, on every branch | those of an earlier answer, whose calls may have the same ids |
 * | answers to questions | the first for each question, from anyone | entries of other runs |
 * | `questions` | questions without an answer, until the next answer with calls; those of inner runs until the next claim, because an inner run does not survive it | |
 * | `queued` | input for this run, until a message delivers it; that of a failed predecessor, if no user message follows its end | input for other runs |
 * | `sandbox` | the last run that recorded one, inherited runs included | an import |
 * | `group` | the roster of the start, and the group's records since its message | records on entries of users |
 * | `agentSetups` | setups and answers of the run | those of other runs |
 * | `stamped` | whether the last start names its run | |
 * | `parked` | the last time that the run parked; it stays after the next claim | parks of other runs |
 * | `end`, `endedAt` | the run's end; a cancel or the session's end, if no process holds the run | ends of other runs |
 * | `output`, `error` | `output` of an end as finished, `error` of any other end | entries before the end |
 */
export function stepRun(state: RunState, entry: Entry, header: LogHeader): RunStep {
  if (!isOwn(header, entry, entry.seq)) return quiet(takeForkedPlace(state, entry, header));
  // The entries after the last answer of a failed run determine whether the next run takes over its calls.
  if (state.end !== null) return quiet(state.end === "failed" && isNode(entry) ? left(state, entry) : state);
  const before = state.open;
  const after = stepRuns(before === null ? NONE : [before], entry);
  const open = after === NONE ? null : (after.find(({ runId }) => runId === state.runId) ?? null);
  const next = open === before ? state : { ...state, open };
  if (before !== null && open === null) return ended(next, entry);
  switch (entry.type) {
    case "message":
    case "custom":
      return said(next, entry);
    case "run":
      return ran(next, entry, before, header);
    case "run_request":
      return quiet(entry.runId === state.runId ? { ...next, request: entry } : next);
    case "run_parked":
      return entry.runId === state.runId ? parked(next, entry) : quiet(next);
    case "approval":
      return approval(next, entry);
    case "effect":
      return quiet(effect(next, entry));
    case "setup":
      return quiet(grown(withSetup(next, entry, entry.agent, entry.id), entry));
    case "queued":
      return quiet(isInputFor(next, entry) ? { ...next, queued: [...next.queued, queuedInput(entry)] } : next);
    case "compaction":
      return compaction(next, entry);
    default:
      return quiet(isNode(entry) ? grown(next, entry) : next);
  }
}

/**
 * A new run with what the previous run left: where tools act and, if that run failed, its undelivered input and open
 * calls. A user message after the failure drops both, because the user has asked for something else.
 */
export function afterRun(state: RunState, before: RunState): RunState {
  const { sandbox, queued, answer } = before;
  const next = { ...state, sandbox: state.sandbox ?? sandbox };
  if (before.end !== "failed") return next;
  return { ...next, queued: [...queued, ...state.queued], answer: answer === null || answer.followed ? null : answer };
}

/** Whether a run has started, as opposed to only being requested. */
export function hasBegun({ state }: { readonly state: string }): boolean {
  return state !== "requested";
}

/** The run that has started and has not ended: it works, waits for an answer, or was answered. */
export function begunRun(open: readonly OpenRun[]): OpenRun | undefined {
  return open.find(hasBegun);
}

/** Whether a run has started and released its session: it waits for an answer, or to be continued after one. */
export function isReleased({ state }: Pick<OpenRun, "state">): boolean {
  return state === "parked" || state === "answered";
}

/** The run to show for a session: the one that has started, otherwise the first that waits to start. */
export function shownRun<Run extends Pick<OpenRun, "state">>(open: readonly Run[]): Run | undefined {
  return open.find(hasBegun) ?? open[0];
}

/** The run that waits for its start time, the earliest first, if no run has begun; null if there is none. */
export function laterRun(open: readonly OpenRun[]): (OpenRun & { readonly notBefore: string }) | null {
  if (open.some(hasBegun)) return null;
  const waiting = open.flatMap((run) => (run.notBefore === undefined ? [] : { ...run, notBefore: run.notBefore }));
  return waiting.sort((one, other) => (one.notBefore < other.notBefore ? -1 : 1))[0] ?? null;
}

/** The status of an open run: waiting to start or to continue, held by a process, waiting for an answer, or interrupted. */
export type OpenRunStatus = "requested" | "running" | "parked" | "interrupted";

/** The status of an open run; `isHeld` says whether a process holds its session. */
export function openStatusOf({ state }: Pick<OpenRun, "state">, isHeld: boolean): OpenRunStatus {
  if (state === "parked") return "parked";
  if (state !== "started") return "requested";
  return isHeld ? "running" : "interrupted";
}

/**
 * The run that must continue next at a given time if no process holds the session; null if none is due. A started run
 * comes first, a parked run blocks all others, and requested runs start in log order.
 */
export function nextRun(open: readonly OpenRun[], now: string): OpenRun | null {
  const begun = open.find(({ state }) => state === "started") ?? open.find(hasBegun);
  if (begun !== undefined) return begun.state === "parked" && !isExpired(begun, now) ? null : begun;
  return open.find((run) => mayBegin(run, now)) ?? null;
}

/**
 * The run that must continue or start before this one; null if there is none. Started runs whose process has died do not count: the next
 * claim of the session ends them.
 */
export function runBefore(open: readonly OpenRun[], runId: string, now: string): OpenRun | null {
  const waiting = open.find((run) => run.runId !== runId && isReleased(run));
  if (waiting !== undefined) return waiting;
  const position = open.findIndex((run) => run.runId === runId);
  if (position >= 0 && hasBegun(open[position] as OpenRun)) return null;
  const earlier = position < 0 ? open : open.slice(0, position);
  return earlier.find((run) => !hasBegun(run) && mayBegin(run, now)) ?? null;
}

function mayBegin({ notBefore = "" }: OpenRun, now: string): boolean {
  return notBefore <= now;
}

/** Whether the questions of a parked run count as denied at a given time. */
export function isExpired({ state, expiresAt }: OpenRun, now: string): boolean {
  return state === "parked" && expiresAt !== undefined && expiresAt <= now;
}

/** Whether an answer was cut short: its calls may be incomplete, and never run. */
export function isCutShort({ stopReason }: AssistantMessage): boolean {
  return stopReason === "length" || stopReason === "content_filter";
}

/** Whether an entry belongs to the run, that is, only the holder of its session could have appended it. */
export function isOfRun({ runId, stamped, open }: Pick<RunState, "runId" | "stamped" | "open">, entry: Entry): boolean {
  if (stamped) return entry.run === runId;
  // Only the holder of a run can append results; a denial may name the user who gave its reason.
  const isResult = entry.type === "message" && entry.message.role === "tool";
  return open?.state === "started" && (entry.by === undefined || isResult);
}

function quiet(state: RunState): RunStep {
  return { state, event: null };
}

/** A fork continues where the tools of its source acted. An imported log cannot determine where tools act. */
function takeForkedPlace(state: RunState, entry: Entry, header: Pick<SessionHeader, "inherited">): RunState {
  if (entry.type !== "run" || entry.sandbox === undefined || isImported(header, entry, entry.seq)) return state;
  return entry.inherited === true ? state : { ...state, sandbox: entry.sandbox };
}

function ran(
  state: RunState,
  entry: EntryOf<"run">,
  before: OpenRun | null,
  header: Pick<SessionHeader, "id" | "inherited">,
): RunStep {
  const placed = entry.sandbox === undefined ? state : { ...state, sandbox: entry.sandbox };
  if (entry.runId !== state.runId) return quiet(placed);
  if (entry.phase !== "started") return ended(placed, entry);
  if (isPlaceOnly(entry, before)) return quiet(placed);
  return started(placed, entry, header.id);
}

function started(state: RunState, entry: EntryOf<"run">, sessionId: string): RunStep {
  const { runId, startedAt, questions } = state;
  const { claim = 0, agent = null, model = null, tools = null, setup = null, timestamp, group: roster } = entry;
  const isGroup = roster !== undefined || state.request?.group !== undefined || state.group !== null;
  const messageId = roster?.messageId ?? state.group?.messageId ?? null;
  const isKnown = messageId !== null && state.group?.messageId === messageId;
  const group = messageId === null ? null : isKnown ? state.group : groupOf(messageId, 0);
  const next: RunState = {
    ...state,
    startedAt: startedAt ?? timestamp,
    claim,
    agent,
    model,
    tools,
    setup,
    stamped: entry.run === runId,
    // Runs inside tools are lost with their process, and so are their questions.
    questions: questions.filter(({ approval: { innerRunId } }) => innerRunId === undefined),
    group,
  };
  if (!isGroup || messageId === null) return { state: next, event: { type: "run-started", runId, claim } };
  const resumed = startedAt !== null || !isKnown;
  const agents = roster?.agents ?? NONE;
  return { state: next, event: { type: "group-started", runId, claim, sessionId, messageId, agents, resumed } };
}

/** The state of a group's run with the setup that an agent's requests are sent with. */
function withSetup(state: RunState, entry: Entry, agent: string | undefined, setup: string | undefined): RunState {
  if (state.group === null || agent === undefined || setup === undefined || !isOfRun(state, entry)) return state;
  if (state.agentSetups.get(agent) === setup) return state;
  return { ...state, agentSetups: new Map(state.agentSetups).set(agent, setup) };
}

/** The state after a message or a record of a group. */
function said(before: RunState, entry: EntryOf<"message" | "custom">): RunStep {
  const state = entry.type === "message" ? withSetup(before, entry, entry.message.agent, entry.setup) : before;
  const isRuns = isOfRun(state, entry);
  const mark = groupMarkOf(entry);
  const isQuestion = mark?.kind === "message" && (entry.run === undefined || entry.run === state.runId);
  if (isQuestion || (mark !== null && isRuns)) return marked(delivered(grown(state, entry), entry), entry, isRuns);
  const grew = delivered(grown(state, entry), entry);
  if (!isRuns || entry.type !== "message" || state.open?.state !== "started") return quiet(grew);
  const { runId } = state;
  const { message } = entry;
  if (message.role === "tool")
    return {
      state: grew,
      event: { type: "tool-finished", runId, round: state.round, callId: message.toolCallId, message },
    };
  if (message.role !== "assistant") return quiet(grew);
  const { stopReason = "stop", toolCalls = NONE } = message;
  const round = state.round + 1;
  const isCut = isCutShort(message);
  const next: RunState = {
    ...spent(withoutQuestions(grew, message), message),
    round,
    toolRounds: state.toolRounds + (toolCalls.length > 0 && !isCut ? 1 : 0),
    answer: answerState(entry.id, isCut ? NONE : toolCalls, state.tools),
  };
  return { state: next, event: { type: "round-finished", runId, round, message, stopReason } };
}

/**
 * An answer with calls closes the questions about earlier calls, as in the head's index: if they have no answer, these
 * calls were given up.
 */
function withoutQuestions(state: RunState, { toolCalls }: AssistantMessage): RunState {
  return toolCalls === undefined || state.questions.length === 0 ? state : { ...state, questions: NONE };
}

/** The state of an answer whose calls have made no progress. */
export function answerState(id: string, calls: readonly ToolCall[], tools: readonly string[] | null): AnswerState {
  return { id, calls, tools, effects: NONE, asked: NONE, below: { id, next: null }, followed: false };
}

function marked(state: RunState, entry: EntryOf<"message" | "custom">, isRuns: boolean): RunStep {
  const stepped = { ...state, group: stepGroup(state.group, entry) };
  const mark = groupMarkOf(entry) as Readonly<Record<string, unknown>>;
  if (!isRuns || state.open?.state !== "started") return quiet(stepped);
  const { runId } = state;
  const message = entry.type === "message" ? entry.message : null;
  const answer = message?.role === "assistant" ? message : null;
  const next = answer === null ? stepped : spent(withoutQuestions(stepped, answer), answer);
  const agent = message?.agent ?? String(mark.agent ?? "");
  if (mark.kind === "failed") {
    const error = recordedError(message?.metadata?.error);
    return { state: next, event: { type: "agent-failed", runId, agent, error } };
  }
  const told = { type: "agent-finished", runId, agent } as const;
  switch (mark.kind) {
    case "turn":
      return {
        state: next,
        event: { ...told, kind: "spoke", turnId: entry.id, text: textOf(message?.content ?? null) },
      };
    case "passed":
      return { state: next, event: { ...told, kind: "passed", turnId: null, text: "" } };
    case "refused":
      return {
        state: next,
        event: { ...told, kind: "refused", turnId: null, text: "", error: recordedError(mark.error) },
      };
    default:
      return quiet(next);
  }
}

/** The nodes after the last answer, with one more added. */
function grown(state: RunState, entry: Entry): RunState {
  const { answer } = state;
  if (answer === null || !holds(answer.below, entry.parentId)) return state;
  const isAnswer = entry.type === "message" && entry.message.role === "assistant" && isOfRun(state, entry);
  if (isAnswer) return state;
  const followed = answer.followed || (entry.type === "message" && entry.message.role === "user");
  return { ...state, answer: { ...answer, below: { id: entry.id, next: answer.below }, followed } };
}

/** What a run that failed leaves to the next one, after one more node. Its input is dropped by a later user message. */
function left(state: RunState, entry: Entry): RunState {
  const grew = grown(state, entry);
  const isUsers = entry.type === "message" && entry.message.role === "user";
  return isUsers && grew.queued.length > 0 ? { ...grew, queued: NONE } : grew;
}

function holds(list: NodeList, id: string | null): boolean {
  for (let node: NodeList | null = list; node !== null; node = node.next) if (node.id === id) return true;
  return false;
}

function delivered(state: RunState, entry: Entry): RunState {
  if (state.queued.length === 0 || entry.type !== "message") return state;
  const id = entry.message.metadata?.[QUEUED_KEY];
  if (typeof id !== "string" || (state.stamped && !isOfRun(state, entry))) return state;
  return { ...state, queued: state.queued.filter((input) => input.id !== id) };
}

/** Before format 3, a recovered run could have another id than its input refers to. */
function isInputFor({ runId, stamped, open }: RunState, entry: EntryOf<"queued">): boolean {
  return entry.runId === runId || (!stamped && open?.state === "started");
}

function queuedInput({ id, kind, content, by }: EntryOf<"queued">): QueuedInput {
  return { id, kind, content, ...defined({ by }) };
}

function spent(state: RunState, { usage, cost }: { readonly usage?: Usage; readonly cost?: number }): RunState {
  if (usage === undefined && cost === undefined) return state;
  return {
    ...state,
    usage: usage === undefined ? state.usage : addUsage(state.usage ?? NO_USAGE, usage),
    cost: cost === undefined ? state.cost : addCost(state.cost ?? 0, cost),
  };
}

function effect(state: RunState, { runId, callId, index, parentId }: EntryOf<"effect">): RunState {
  const { answer } = state;
  if (answer === null || runId !== state.runId || !holds(answer.below, parentId)) return state;
  return { ...state, answer: { ...answer, effects: [...answer.effects, { callId, ...defined({ index }) }] } };
}

function approval(state: RunState, entry: EntryOf<"approval">): RunStep {
  // Before format 3, the agents of a group asked under run ids that were not recorded.
  const isOfRun = entry.runId === state.runId || (state.group !== null && !state.stamped);
  if (!isOfRun) return quiet(state);
  return entry.decision === undefined ? asks(state, entry) : quiet(answers(state, entry));
}

function asks(state: RunState, entry: EntryOf<"approval">): RunStep {
  const { id, callId, index, digest, asked, parentId, timestamp } = entry;
  const { answer, runId, round, group } = state;
  const isAbout = answer !== null && !isInnerQuestion(entry) && holds(answer.below, parentId);
  const about = { question: id, callId, ...defined({ index, digest }), answer: null };
  const next = isAbout ? { ...state, answer: { ...answer, asked: [...answer.asked, about] } } : state;
  if (asked === undefined) return quiet(next);
  const question = { ...asked, callId, question: id } as unknown as Approval;
  const questions = [...next.questions, { approval: question, askedAt: timestamp }];
  const speaker = group?.speaker ?? null;
  const event = { type: "approval-required", runId, round, approval: question } as const;
  return { state: { ...next, questions }, event: speaker === null ? event : { ...event, agent: speaker } };
}

/**
 * Of several answers to a question, the first in the log counts. For old answers, which name only a call, the latest
 * counts.
 */
function answers(state: RunState, entry: EntryOf<"approval">): RunState {
  const { callId, question, decision, note, by, parentId } = entry;
  const given = { parentId, ...defined({ decision, note, by }) };
  const questions = state.questions.filter(
    ({ approval: asked }) => asked.question !== question && (question !== undefined || asked.callId !== callId),
  );
  const next = questions.length === state.questions.length ? state : { ...state, questions };
  const { answer } = next;
  if (answer === null) return next;
  const asked =
    question === undefined
      ? [...answer.asked, { question: null, callId, answer: given }]
      : answer.asked.map((about) =>
          about.question === question && about.answer === null ? { ...about, answer: given } : about,
        );
  return { ...next, answer: { ...answer, asked } };
}

function parked(state: RunState, entry: EntryOf<"run_parked">): RunStep {
  const { questions, expiresAt } = entry;
  const isAsked = ({ approval: { question } }: OpenQuestion): boolean =>
    questions.some((open) => open.question === question);
  const open = state.questions.map((question) =>
    isAsked(question) ? { ...question, ...defined({ expiresAt }) } : question,
  );
  const approvals = open.filter(isAsked).map((question) => question.approval);
  return {
    state: { ...state, questions: open, parked: entry },
    event: { type: "run-parked", runId: state.runId, questions: approvals, ...defined({ expiresAt }) },
  };
}

function compaction(state: RunState, entry: EntryOf<"compaction">): RunStep {
  const { id: entryId, summary, firstKeptEntryId, tokensBefore } = entry;
  const grew = grown(state, entry);
  if (!isOfRun(state, entry) || state.open?.state !== "started") return quiet(grew);
  const { runId, round } = state;
  return {
    state: spent(grew, entry),
    event: { type: "compaction", runId, round: round + 1, entryId, summary, firstKeptEntryId, tokensBefore },
  };
}

function ended(state: RunState, entry: Entry): RunStep {
  const end = entry.type === "run" && entry.phase !== "started" ? entry.phase : "cancelled";
  const { runId, group } = state;
  const { output, truncated = false, usage = null, error: recorded } = entry.type === "run" ? entry : {};
  const over: RunState = { ...state, open: null, end, endedAt: entry.timestamp, questions: NONE };
  const isGroup = group !== null || state.request?.group !== undefined;
  if (end === "finished") {
    const next = { ...over, output };
    if (isGroup) {
      const outcome = { reason: group?.ended ?? "complete" } as const;
      return { state: next, event: { type: "group-finished", runId, outcome } };
    }
    return { state: next, event: { type: "run-finished", runId, truncated, usage, ...defined({ output }) } };
  }
  const error = recordedError(entry.type === "run" ? recorded : `Run ${runId} was cancelled.`);
  const next = { ...over, error };
  if (!isGroup) return { state: next, event: { type: "run-failed", runId, error } };
  const failure = end === "cancelled" ? null : (group?.failure ?? null);
  if (failure === null) return { state: next, event: { type: "group-failed", runId, error } };
  return { state: next, event: { type: "group-finished", runId, outcome: { reason: "agent-failed", ...failure } } };
}

/** Folds the entries of a session's log into the states of its runs. Each run continues the one before it. */
export class RunsFold {
  readonly #states = new Map<string, RunState>();
  readonly #header: LogHeader;
  readonly #answerId: string | null;
  #last: RunState = newRun("");

  /** With `answerId`, the state of the run that gave this answer keeps it as its last answer, whatever follows. */
  constructor(header: LogHeader, answerId: string | null = null) {
    this.#header = header;
    this.#answerId = answerId;
  }

  /** The runs in the order in which they were requested or started. */
  get states(): ReadonlyMap<string, RunState> {
    return this.#states;
  }

  /** The run that started last. If the log has no run, returns a run without an id, which records where a fork's tools act. */
  get last(): RunState {
    return this.#last;
  }

  take(entry: Entry): void {
    const own = isOwn(this.#header, entry, entry.seq);
    if (own && (entry.type === "run" || entry.type === "run_request") && !this.#states.has(entry.runId))
      this.#states.set(entry.runId, newRun(entry.runId));
    if (this.#last.runId === "") this.#last = stepRun(this.#last, entry, this.#header).state;
    for (const [runId, state] of this.#states) {
      if (state.end !== null && state !== this.#last) continue;
      const begins =
        own && entry.type === "run" && entry.runId === runId && entry.phase === "started" && state.startedAt === null;
      const next = this.#step(begins ? afterRun(state, this.#last) : state, entry);
      if (next !== state) this.#states.set(runId, next);
      if (begins || state === this.#last) this.#last = next;
    }
  }

  #step(state: RunState, entry: Entry): RunState {
    const next = stepRun(state, entry, this.#header).state;
    const isKept = state.answer !== null && state.answer.id === this.#answerId && next.answer?.id !== this.#answerId;
    return isKept ? { ...next, answer: state.answer } : next;
  }
}

/** The fields of a session's header that the fold of a run needs. */
type LogHeader = Pick<SessionHeader, "id" | "inherited" | "forkedFrom">;
