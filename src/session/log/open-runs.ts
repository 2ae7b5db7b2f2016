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
  /** Of a parked one: the entries that ask and have no answer yet. */
  readonly questions?: readonly string[];
  /** Of a parked one: from when on what it asks counts as denied. */
  readonly expiresAt?: string;
  /** Of a started one: it was told to stop. */
  readonly cancelled?: true;
  /** Of a started one: how often it was claimed in a row without a new row, where that was more than once. */
  readonly claims?: number;
}

/** Open runs as a store holds them: the first version kept the ids of those that had started. */
export function readOpenRuns(stored: readonly (OpenRun | string)[]): readonly OpenRun[] {
  return stored.map((run) => (typeof run === "string" ? { runId: run, state: "started" } : run));
}

/** How open runs are looked for; see `SessionQuery.runs`. */
export type RunsWord = "requested" | "running" | "parked" | "interrupted";

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

/** The id of the entry that answers a question: of two answers, the first has it. */
export function answerIdOf(question: string): string {
  return `answer:${question}`;
}

/** The open runs after one more entry of the session's own; the same list where nothing changed. */
export function stepRuns(open: readonly OpenRun[], entry: Entry): readonly OpenRun[] {
  switch (entry.type) {
    case "run_request":
      return [...without(open, entry.runId), requested(entry)];
    case "run":
      return stepRun(open, entry);
    case "run_parked":
      return change(open, entry.runId, () => parked(entry));
    case "approval":
      return entry.decision === undefined || entry.question === undefined ? open : answer(open, entry.question);
    case "cancel":
      return change(open, entry.runId, (run) => (run.state === "started" ? { ...run, cancelled: true } : null));
    case "status":
      return entry.status === "closed" || entry.status === "expired" ? startedOf(open) : open;
    case "message":
      return open.some(({ claims }) => claims !== undefined) ? open.map(({ claims: _, ...run }) => run) : open;
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
    parked: has("parked"),
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
  if (query.runs === "requested" || query.runs === "parked") return index[query.runs];
  return index.started && isHeld() === (query.runs === "running");
}

function dueTime({ state, notBefore = "", expiresAt }: OpenRun): readonly string[] {
  if (state === "parked") return expiresAt === undefined ? [] : [expiresAt];
  return state === "started" ? [] : [notBefore];
}

function requested({ runId, notBefore }: EntryOf<"run_request">): OpenRun {
  return { runId, state: "requested", ...(notBefore === undefined ? {} : { notBefore }) };
}

function parked({ runId, questions, expiresAt }: EntryOf<"run_parked">): OpenRun {
  const open = { runId, questions: questions.map(({ question }) => question) };
  if (open.questions.length === 0) return { runId, state: "answered" };
  return { ...open, state: "parked", ...(expiresAt === undefined ? {} : { expiresAt }) };
}

function stepRun(open: readonly OpenRun[], { runId, phase, sandbox }: EntryOf<"run">): readonly OpenRun[] {
  if (phase !== "started") return without(open, runId);
  const known = open.find((run) => run.runId === runId);
  // Where the tools act is told with a second `started`, which begins nothing.
  if (sandbox !== undefined && known?.state === "started") return open;
  const claims = (known?.state === "started" ? (known.claims ?? 1) : (known?.claims ?? 0)) + 1;
  const started: OpenRun = { runId, state: "started", ...(claims > 1 ? { claims } : {}) };
  return [...without(open, runId), started];
}

function answer(open: readonly OpenRun[], question: string): readonly OpenRun[] {
  const asks = open.find(({ questions }) => questions?.includes(question) === true);
  if (asks === undefined) return open;
  const questions = asks.questions?.filter((id) => id !== question) ?? [];
  return change(open, asks.runId, ({ runId, ...run }) =>
    questions.length === 0 ? { runId, state: "answered" } : { runId, ...run, questions },
  );
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
