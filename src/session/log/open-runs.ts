import { defined } from "../../internal/defined.ts";
import type { Entry, EntryOf } from "./entry.ts";

/** A run of a session that was requested or has started, and has not ended. */
export interface OpenRun {
  readonly runId: string;
  /**
   * - `requested`: its request is stored, and it has not started.
   * - `started`: it is running, or the process that ran it died.
   * - `parked`: it waits for an answer, and no process holds it.
   * - `answered`: it was parked, and all its questions are answered.
   */
  readonly state: "requested" | "started" | "parked" | "answered";
  /** For a requested run: the earliest time at which it may start. */
  readonly notBefore?: string;
  /** For a parked or started run: the ids of its questions without an answer. */
  readonly questions?: readonly string[];
  /**
   * For a started run: the unanswered questions of runs inside its tools. They cannot be answered after the process that holds the run has
   * died.
   */
  readonly innerQuestions?: readonly string[];
  /** For a parked run: the time from which its questions count as denied. */
  readonly expiresAt?: string;
  /**
   * The code of the latest reason why no worker could start or continue it. The entry with the message is
   * `blockedIdOf`.
   */
  readonly blocked?: string;
  /** For a started run: it was asked to stop. */
  readonly cancelled?: true;
  /** For a started run: how many times in a row it was claimed without a new row; only if more than once. */
  readonly claims?: number;
  /**
   * The position of the run's request, or of the first entry of the append that started it. Absent if a version before
   * format 3 wrote the entry.
   */
  readonly first?: number;
}

/**
 * The open runs of a fold, without `first` for runs whose stored head has none: programs before format 3 did not store
 * it.
 */
export function openRunsAsStored(folded: readonly OpenRun[], stored: readonly OpenRun[]): readonly OpenRun[] {
  return folded.map(({ first, ...run }, index) =>
    first === undefined || stored[index]?.first === undefined ? run : { ...run, first },
  );
}

/** Reads open runs as stored. The first version stored only the ids of started runs. */
export function readOpenRuns(stored: readonly (OpenRun | string)[]): readonly OpenRun[] {
  return stored.map((run) => (typeof run === "string" ? { runId: run, state: "started" } : run));
}

/** The values of `SessionQuery.runs`. A run with a question matches two of them. */
export type RunsCondition = "requested" | "running" | "asking" | "interrupted";

/** The id of the entry that asks for a run. */
export function requestIdOf(runId: string): string {
  return `run:${runId}`;
}

/** The id of the message that a requested run's input becomes. */
export function inputIdOf(runId: string): string {
  return `run:${runId}/input`;
}

/** The id of the entry that moves the leaf to where a requested run starts. */
export function moveIdOf(runId: string): string {
  return `run:${runId}/from`;
}

/** The id of the entry that records why no worker could start a run. Each reason is recorded once. */
export function blockedIdOf(runId: string, code: string): string {
  return `run:${runId}/blocked/${code}`;
}

/** The id of the answer to a question. Only the first answer can be stored under it. */
export function answerIdOf(question: string): string {
  return `answer:${question}`;
}

/** Prefixes of ids that are derived from a run or a question; no other entry may use them. */
const RESERVED_PREFIXES: readonly string[] = ["run:", "answer:"];

/** The suffixes that distinguish the entries of one run. */
const RUN_ID_ENDING = /\/(?:input|from|blocked\/[^/]*)$/;

/** Whether an entry's id is derived from a run or a question. */
export function isReservedId(id: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => id.startsWith(prefix));
}

/** Whether an id is the id of a run's input. */
export function isInputId(id: string): boolean {
  return id.startsWith("run:") && id.endsWith("/input");
}

/** Whether ids derived from this run id cannot collide with those of another run. */
export function isRunId(runId: string): boolean {
  return !RUN_ID_ENDING.test(runId);
}

/** The open runs after one more of the session's own entries; the same array if nothing changed. */
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
      if (entry.decision === undefined) return change(open, entry.runId, (run) => withQuestion(run, entry));
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

/** Whether a run waits to start, to continue or for an answer. A session with such a run is not idle. */
export function hasWaitingRun(open: readonly OpenRun[]): boolean {
  return open.some(({ state }) => state !== "started");
}

/** The columns by which a listing finds sessions with open runs. */
export interface RunsIndex {
  readonly requested: boolean;
  readonly started: boolean;
  /** Whether a run waits for an answer, even if it has not parked yet. The name is that of stored indexes. */
  readonly parked: boolean;
  /** When a run that no process holds must be taken up: an empty string means immediately, null means never. */
  readonly due: string | null;
}

/**
 * Returns the index columns for the open runs of a session. An answered run counts as requested: it waits for a worker.
 */
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
 * Whether a session matches a query by its open runs. `isHeld` tells whether a process holds the session now; it is
 * called only if the answer depends on it.
 */
export function matchesRuns(
  open: readonly OpenRun[],
  query: { readonly runs?: RunsCondition; readonly dueBefore?: string },
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

/**
 * Whether a start of a run only records where its tools act, and starts nothing; `before` is the run before it. Without
 * `before`, whether that is so for a run that has started.
 */
export function isPlaceOnly(
  { phase, sandbox }: Pick<EntryOf<"run">, "phase" | "sandbox">,
  before: Pick<OpenRun, "state"> | null = { state: "started" },
): boolean {
  return phase === "started" && sandbox !== undefined && before?.state === "started";
}

function stepStartOrEnd(open: readonly OpenRun[], entry: EntryOf<"run">): readonly OpenRun[] {
  const { runId, phase, before, seq } = entry;
  if (phase !== "started") return without(open, runId);
  const known = open.find((run) => run.runId === runId);
  if (isPlaceOnly(entry, known)) return open;
  const claims = (known?.state === "started" ? (known.claims ?? 1) : (known?.claims ?? 0)) + 1;
  // A cancel is final: the process that claimed the run may not have seen it.
  const cancelled = known?.cancelled === true ? { cancelled: true as const } : {};
  // The process that continues the run does not ask again; questions of runs inside its tools are lost.
  const questions = known?.questions === undefined ? {} : { questions: known.questions };
  const first = known?.first ?? (known === undefined && before !== undefined ? seq - before : undefined);
  const more = { ...cancelled, ...(claims > 1 ? { claims } : {}), ...questions, ...defined({ first }) };
  const started: OpenRun = { runId, state: "started", ...more };
  return [...without(open, runId), started];
}

/**
 * The open runs after one more message: the claims before it made progress, and questions about earlier calls are
 * closed.
 */
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

/** A started run with one more question. */
function withQuestion(run: OpenRun, entry: EntryOf<"approval">): OpenRun {
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

/** The runs that remain open when a session ends: started ones, whose process ends them itself. */
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

/** Whether a question belongs to a run inside a tool. It exists only in that process and is lost with it. */
export function isInnerQuestion({ asked }: EntryOf<"approval">): boolean {
  return asked?.["innerRunId"] !== undefined;
}
