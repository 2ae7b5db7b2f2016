import { defined } from "../../internal/defined.ts";
import type { Entry, EntryOf } from "./entry.ts";

/** A run of a session that was asked for or has started, and has not ended. */
export interface OpenRun {
  readonly runId: string;
  /**
   * - `requested`: someone asked for it, and nobody has begun.
   * - `started`: it goes on, or whoever had it died.
   * - `parked`: it waits for an answer and nobody has it.
   * - `answered`: it was parked, and all that it asked has an answer.
   */
  readonly state: "requested" | "started" | "parked" | "answered";
  /** Of a requested one: when it may begin at the earliest. */
  readonly notBefore?: string;
  /** The entries that ask and have no answer yet, of one that is parked or has started. */
  readonly questions?: readonly string[];
  /** Likewise of a started one, what runs inside its tools ask: it cannot be answered once nobody has the run. */
  readonly innerQuestions?: readonly string[];
  /** Of a parked one: from when on what it asks counts as denied. */
  readonly expiresAt?: string;
  /** The code of the last reason why nobody could begin it, or go on with it; the entry with the words is `blockedIdOf`. */
  readonly blocked?: string;
  /** Of a started one: it was told to stop. */
  readonly cancelled?: true;
  /** Of a started one: how often it was claimed in a row without a new row, where that was more than once. */
  readonly claims?: number;
  /**
   * The position of the run's request, or of the first entry of the append that started it. Left out where a version before
   * format 3 wrote the entry.
   */
  readonly first?: number;
}

/** The open runs of a fold, without `first` where the stored head has none: programs before format 3 did not store it. */
export function openRunsAsStored(folded: readonly OpenRun[], stored: readonly OpenRun[]): readonly OpenRun[] {
  return folded.map(({ first, ...run }, index) =>
    first === undefined || stored[index]?.first === undefined ? run : { ...run, first },
  );
}

/** Open runs as a store holds them: the first version kept the ids of those that had started. */
export function readOpenRuns(stored: readonly (OpenRun | string)[]): readonly OpenRun[] {
  return stored.map((run) => (typeof run === "string" ? { runId: run, state: "started" } : run));
}

/** How open runs are looked for; see `SessionQuery.runs`. One that asks something is found under two of them. */
export type RunsWord = "requested" | "running" | "asking" | "interrupted";

/** The id of the entry that asks for a run. */
export function requestIdOf(runId: string): string {
  return `run:${runId}`;
}

/** The id of the row that a requested run's input becomes. */
export function inputIdOf(runId: string): string {
  return `run:${runId}/input`;
}

/** The id of the entry that moves the leaf to where a requested run goes on from. */
export function moveIdOf(runId: string): string {
  return `run:${runId}/from`;
}

/** The id of the entry that says why nobody could begin a run: each reason is on record once. */
export function blockedIdOf(runId: string, code: string): string {
  return `run:${runId}/blocked/${code}`;
}

/** The id of the entry that answers a question: of two answers, the first has it. */
export function answerIdOf(question: string): string {
  return `answer:${question}`;
}

/** Ids that begin like this are derived from a run or a question, and nothing else may take them. */
const RESERVED_PREFIXES: readonly string[] = ["run:", "answer:"];

/** The endings that tell the entries of one run apart. */
const RUN_ID_ENDING = /\/(?:input|from|blocked\/[^/]*)$/;

/** Whether an entry's id is derived from a run or a question. */
export function isReservedId(id: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => id.startsWith(prefix));
}

/** Whether an id is that of a run's input. */
export function isInputId(id: string): boolean {
  return id.startsWith("run:") && id.endsWith("/input");
}

/** Whether ids can be derived from a run's id without being those of another run. */
export function isRunId(runId: string): boolean {
  return !RUN_ID_ENDING.test(runId);
}

/** The open runs after one more entry of the session's own; the same list where nothing changed. */
export function stepRuns(open: readonly OpenRun[], entry: Entry): readonly OpenRun[] {
  switch (entry.type) {
    case "run_request":
      return [...without(open, entry.runId), requested(entry)];
    case "run":
      return stepStartOrEnd(open, entry);
    case "run_parked":
      return change(open, entry.runId, ({ first }) => ({ ...parked(entry), ...defined({ first }) }));
    case "run_blocked":
      return change(open, entry.runId, (run) => ({ ...run, blocked: entry.code }));
    case "approval":
      if (entry.decision === undefined) return change(open, entry.runId, (run) => asking(run, entry));
      return entry.question === undefined ? open : answer(open, entry.question);
    case "cancel":
      return change(open, entry.runId, (run) => (run.state === "started" ? { ...run, cancelled: true } : null));
    case "status":
      return entry.status === "closed" || entry.status === "expired" ? startedOf(open) : open;
    case "message":
      return afterRow(open, entry);
    default:
      return open;
  }
}

/**
 * The run that is to go on next at a time, if nobody has the session; null where none is due. One that has started goes
 * before all, one that is parked lets no other pass, and those that were asked for begin in the order of the log.
 */
export function nextRun(open: readonly OpenRun[], now: string): OpenRun | null {
  const begun = open.find(({ state }) => state === "started") ?? open.find(({ state }) => state !== "requested");
  if (begun !== undefined) return begun.state === "parked" && !isExpired(begun, now) ? null : begun;
  return open.find(({ notBefore }) => notBefore === undefined || notBefore <= now) ?? null;
}

/** Whether what a parked run asks counts as denied by a time. */
export function isExpired({ state, expiresAt }: OpenRun, now: string): boolean {
  return state === "parked" && expiresAt !== undefined && expiresAt <= now;
}

/** Whether a run waits to begin, to go on or for an answer: a session with one is not idle. */
export function hasWaitingRun(open: readonly OpenRun[]): boolean {
  return open.some(({ state }) => state !== "started");
}

/** What a listing keeps of open runs, so that sessions are found by them. */
export interface RunsIndex {
  readonly requested: boolean;
  readonly started: boolean;
  /** Whether one waits for an answer, also while it has not parked; the name is that of stored indexes. */
  readonly parked: boolean;
  /** From when on something is to be done about one that nobody has; an empty text means at once, null means never. */
  readonly due: string | null;
}

/** What a listing keeps of the open runs of a session. An answered one counts as requested: it waits to be taken up. */
export function runsIndexOf(open: readonly OpenRun[]): RunsIndex {
  const has = (...states: readonly OpenRun["state"][]): boolean => open.some(({ state }) => states.includes(state));
  const times = open.flatMap(dueTime).sort();
  return {
    requested: has("requested", "answered"),
    started: has("started"),
    parked: open.some((run) => run.state === "parked" || asksOf(run).length > 0),
    due: times[0] ?? null,
  };
}

/**
 * Whether a session is one of those that a query asks for by its open runs. `isHeld` says whether someone has the session
 * now; it is asked only where that matters.
 */
export function matchesRuns(
  open: readonly OpenRun[],
  query: { readonly runs?: RunsWord; readonly dueBefore?: string },
  isHeld: () => boolean,
): boolean {
  if (query.runs === undefined && query.dueBefore === undefined) return true;
  const { due, ...index } = runsIndexOf(open);
  if (query.dueBefore !== undefined && !(due !== null && due < query.dueBefore)) return false;
  if (query.runs === undefined) return true;
  if (query.runs === "requested") return index.requested;
  if (query.runs === "asking") return index.parked;
  return index.started && isHeld() === (query.runs === "running");
}

function dueTime({ state, notBefore = "", expiresAt }: OpenRun): readonly string[] {
  if (state === "parked") return expiresAt === undefined ? [] : [expiresAt];
  return state === "started" ? [] : [notBefore];
}

function requested({ runId, notBefore, seq: first }: EntryOf<"run_request">): OpenRun {
  return { runId, state: "requested", ...defined({ notBefore }), first };
}

function parked({ runId, questions, expiresAt }: EntryOf<"run_parked">): OpenRun {
  const open = { runId, questions: questions.map(({ question }) => question) };
  if (open.questions.length === 0) return { runId, state: "answered" };
  return { ...open, state: "parked", ...(expiresAt === undefined ? {} : { expiresAt }) };
}

function stepStartOrEnd(
  open: readonly OpenRun[],
  { runId, phase, sandbox, before, seq }: EntryOf<"run">,
): readonly OpenRun[] {
  if (phase !== "started") return without(open, runId);
  const known = open.find((run) => run.runId === runId);
  // Where the tools act is told with a second `started`, which begins nothing.
  if (sandbox !== undefined && known?.state === "started") return open;
  const claims = (known?.state === "started" ? (known.claims ?? 1) : (known?.claims ?? 0)) + 1;
  // A cancel is final: whoever claimed the run may not have seen it.
  const cancelled = known?.cancelled === true ? { cancelled: true as const } : {};
  // Who goes on with the run asks nothing anew; what runs inside its tools asked is gone.
  const questions = known?.questions === undefined ? {} : { questions: known.questions };
  const first = known?.first ?? (known === undefined && before !== undefined ? seq - before : undefined);
  const more = { ...cancelled, ...(claims > 1 ? { claims } : {}), ...questions, ...defined({ first }) };
  const started: OpenRun = { runId, state: "started", ...more };
  return [...without(open, runId), started];
}

/** The open runs after one more row: the claims before it got somewhere, and of earlier calls nothing is asked any more. */
function afterRow(open: readonly OpenRun[], { message }: EntryOf<"message">): readonly OpenRun[] {
  const calls = message.role === "assistant" && message.toolCalls !== undefined;
  const hasAsked = (run: OpenRun): boolean => calls && run.state === "started" && asksOf(run).length > 0;
  if (!open.some((run) => run.claims !== undefined || hasAsked(run))) return open;
  return open.map(({ claims: _, ...run }) => {
    if (!hasAsked(run)) return run;
    const { questions: _own, innerQuestions: _inner, ...rest } = run;
    return rest;
  });
}

/** A started run that asks one more thing. */
function asking(run: OpenRun, entry: EntryOf<"approval">): OpenRun {
  if (run.state !== "started") return run;
  const field = isInnerQuestion(entry) ? "innerQuestions" : "questions";
  return { ...run, [field]: [...(run[field] ?? []), entry.id] };
}

function answer(open: readonly OpenRun[], question: string): readonly OpenRun[] {
  const asks = open.find((run) => asksOf(run).includes(question));
  if (asks === undefined) return open;
  return change(open, asks.runId, ({ questions, innerQuestions, ...run }) => {
    const others = (ids: readonly string[] = []): readonly string[] | undefined => {
      const left = ids.filter((id) => id !== question);
      return left.length === 0 ? undefined : left;
    };
    const [own, inner] = [others(questions), others(innerQuestions)];
    if (run.state === "parked" && own === undefined)
      return { runId: run.runId, state: "answered", ...defined({ first: run.first }) };
    return { ...run, ...defined({ questions: own, innerQuestions: inner }) };
  });
}

/** The questions of a run that have no answer. */
export function asksOf({ questions = [], innerQuestions = [] }: OpenRun): readonly string[] {
  return innerQuestions.length === 0 ? questions : [...questions, ...innerQuestions];
}

/** What a session keeps when it ends: whoever is at work in it ends by itself. */
function startedOf(open: readonly OpenRun[]): readonly OpenRun[] {
  return open.every(({ state }) => state === "started") ? open : open.filter(({ state }) => state === "started");
}

function change(open: readonly OpenRun[], runId: string, to: (run: OpenRun) => OpenRun | null): readonly OpenRun[] {
  return open.some((run) => run.runId === runId)
    ? open.flatMap((run) => (run.runId === runId ? (to(run) ?? []) : [run]))
    : open;
}

function without(open: readonly OpenRun[], runId: string): readonly OpenRun[] {
  return open.filter((run) => run.runId !== runId);
}

/** Whether a question is one of a run inside of a tool: it is asked in that process only, and gone with it. */
export function isInnerQuestion({ asked }: EntryOf<"approval">): boolean {
  return asked?.["innerRunId"] !== undefined;
}
