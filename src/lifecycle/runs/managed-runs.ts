import type { LoopOptions } from "../../agent/loop-options.ts";
import { withCurrentAsk } from "../../agent/tools/ask-policy.ts";
import { defined } from "../../internal/defined.ts";
import { endOf, readRequest } from "../../agent/persist/claim-run.ts";
import { outputSchema } from "../../agent/output/run-output.ts";
import { pollFollowers } from "../../agent/persist/log-follower.ts";
import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError, show } from "../../session/errors.ts";
import { isOwn, type SessionHead } from "../../session/log/fold.ts";
import type { Content } from "../../session/message.ts";
import { checkUserMessages, type RunInput, requestedInput } from "../../session/run-input.ts";
import { answerIdOf, isInnerQuestion, moveIdOf, type OpenRun, requestIdOf } from "../../session/log/open-runs.ts";
import { begunRun, hasBegun, isExpired, shownRun } from "../../session/log/run-fold.ts";
import type { AppendOptions, AppendResult, SessionStore } from "../../session/store.ts";
import { type ActorOptions, byOf } from "../access.ts";
import type { ManagedSessions } from "../managed-sessions.ts";
import { serialize } from "../../internal/session-queue.ts";
import { untilAborted } from "../../agent/follow-abort.ts";

const TRIES_MAX = 20;

/** The loop options that are plain data and that a requester may set. */
const REQUEST_OPTIONS: readonly string[] = [
  ...["toolChoice", "thinkingLevel", "temperature", "maxOutputTokens", "stop", "providerOptions"],
  ...["maxToolRounds", "budget", "builtInTools", "ask", "output", "outputRetries"],
];

/** The options of a stored request, without unknown ones, which another version may have written. */
export function requestedOptions({ options = {} }: Pick<ManagedRunRequest, "options">): Partial<LoopOptions> {
  const known = Object.entries(withCurrentAsk(options)).filter(([key]) => REQUEST_OPTIONS.includes(key));
  return Object.fromEntries(known);
}

/** What to do if a run of the session is open: refuse, wait in log order, or cancel the running one. */
export type IfBusy = "reject" | "enqueue" | "interrupt";

/** A request for a run. */
export interface ManagedRunRequest {
  /** The name of the agent or group that must answer (default: the only one of the process that runs it). */
  readonly agent?: string;
  readonly group?: string;
  /** The input; an empty list of parts adds nothing: the last message of the session is answered. */
  readonly input: RunInput;
  /** The entry to continue from, null for the beginning (default: the leaf). The request moves the leaf there. */
  readonly from?: string | null;
  /** The caller's id for the run (default: a UUIDv7). A repeated request with the same id is the same run. */
  readonly runId?: string;
  /** The model to use instead of the agent's own, as `provider/id`. */
  readonly model?: string;
  /**
   * Loop options that are plain data: request parameters, rounds, budget, tools, `ask`, and the JSON Schema of an
   * `output`.
   */
  readonly options?: JsonObject;
  /** The earliest start and the latest end; ISO-8601 with milliseconds, UTC. */
  readonly notBefore?: string;
  readonly deadline?: string;
  readonly ifBusy?: IfBusy;
}

/** A run by its id and its session's. */
export interface RunName {
  readonly runId: string;
  readonly sessionId: string;
}

/** A requested run. */
export interface RequestedRun extends RunName {
  /** The session's head after the request. */
  readonly head: SessionHead;
}

/** Options of a request. */
export interface RequestOptions extends ActorOptions {
  /** The session's head, if it was just read, so that it is not read again. */
  readonly head?: SessionHead;
}

/** Which run to cancel, and why. */
export interface CancelRun {
  readonly runId?: string;
  readonly reason?: string;
}

/** A question: its id, or one of the `questions` of an answer or of an open run. */
export type QuestionName = string | { readonly question: string };

/** Options of an approval. */
export interface ApproveOptions {
  /** Recorded for readers of the log. */
  readonly note?: string;
}

/** Options of a denial. */
export interface DenyOptions extends ApproveOptions {
  /** Sent to the model. */
  readonly reason?: string | null;
}

/** The parts of a manager that `ManagedRuns` uses. */
export interface ManagedRunsInit {
  readonly store: SessionStore;
  readonly sessions: ManagedSessions;
  readonly clock: () => Date;
}

/** Requests and cancels runs, adds input to them and answers their questions, whichever process holds them. */
export class ManagedRuns {
  /** Emitted when a run of this process has released its session. */
  readonly released: SessionSignal = new SessionSignal();
  readonly #store: SessionStore;
  readonly #sessions: ManagedSessions;
  readonly #clock: () => Date;

  constructor({ store, sessions, clock }: ManagedRunsInit) {
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = clock;
  }

  /** Records a request; returns it with the session's head. */
  async request(
    id: string,
    request: ManagedRunRequest,
    { head: known, ...options }: RequestOptions,
  ): Promise<RequestedRun> {
    const { runId = uuidv7(), ifBusy = "reject" } = checkRequest(request);
    const draft = requestDraft(runId, request);
    const drafts = [...moveDrafts(runId, request), draft];
    // Serialized, so that the requests of one process are recorded in the order in which they were made.
    return serialize(this.#store, id, async () => {
      const before = await this.#sessions.prepare(id, options, known);
      await this.#checkNewInput(before, draft);
      try {
        const { head } = await (ifBusy === "interrupt"
          ? this.#interrupt(id, drafts, options)
          : this.#append(id, drafts, options, {
              guard: { status: "active", ...(ifBusy === "reject" ? { noOpenRun: true } : {}) },
            }));
        return { runId, sessionId: id, head };
      } catch (error) {
        if (!isCode(error, "ENTRY_EXISTS")) throw error;
        const text = `Run ${show(runId)} of session ${id} was requested with other content; use another runId.`;
        throw new SessionError("CONFLICT", text, { cause: error });
      }
    });
  }

  /** Asks a run to stop; false if none is open. The end of a run whose process has died is recorded here. */
  async cancel(id: string, { runId, reason }: CancelRun, options: ActorOptions): Promise<boolean> {
    const told = await this.#atVersion(id, options, async ({ openRuns }) => {
      const run = runId === undefined ? shownRun(openRuns) : openRuns.find((open) => open.runId === runId);
      if (run === undefined) return null;
      const asked = run.cancelled === true ? [] : [cancelDraft(run.runId, reason)];
      const isDead = run.state === "started" && (await this.#store.leaseOf(id)) === null;
      return isDead ? [...asked, endOf({ ...run, cancelled: true })] : asked;
    });
    return told !== null;
  }

  /** Withdraws a request, unless a process has already started the run. */
  async withdraw(id: string, runId: string, options: ActorOptions): Promise<void> {
    await this.#atVersion(id, options, ({ openRuns }) =>
      openRuns.some((run) => run.runId === runId && !hasBegun(run)) ? [cancelDraft(runId, undefined)] : null,
    );
  }

  /** Adds input to the running run. @throws {SessionError} `RUN_ENDED` if none is running. */
  async say(id: string, kind: "steer" | "followUp", content: Content, options: ActorOptions): Promise<void> {
    const said = await this.#atVersion(id, options, async ({ openRuns }) => {
      const run = begunRun(openRuns);
      if (run === undefined) return null;
      await this.#checkListens(id, run);
      return [{ type: "queued", runId: run.runId, kind, content } as const];
    });
    if (said === null) throw new SessionError("RUN_ENDED", `No run of session ${id} has begun; request one.`);
  }

  /** Answers a question by its id. The first answer counts; repeating it has no effect. */
  async answer(
    id: string,
    named: QuestionName,
    { decision, note }: ApproveOptions & { readonly decision: JsonObject },
    options: ActorOptions,
  ): Promise<void> {
    const question = typeof named === "object" && named !== null ? named.question : named;
    const head = await this.#sessions.prepare(id, options);
    const asked = await this.#questionOf(head, question);
    const draft: EntryDraft = {
      type: "approval",
      id: answerIdOf(question),
      runId: asked.runId,
      callId: asked.callId,
      question,
      decision,
      ...defined({ note }),
    };
    try {
      await this.#append(id, [draft], options);
    } catch (error) {
      if (!isCode(error, "ENTRY_EXISTS")) throw error;
      const text = `Question ${show(question)} of session ${id} has another answer already; the first one counts.`;
      throw new SessionError("CONFLICT", text, { cause: error });
    }
  }

  /** A repeated request is accepted, even if the session has messages by now. */
  async #checkNewInput({ header, messageCount }: SessionHead, { id, messages }: RequestDraft): Promise<void> {
    if (messageCount === 0 || messages === undefined || (await this.#store.getEntry(header.id, id)) !== null) return;
    checkUserMessages(header.id, messages);
  }

  async #checkListens(id: string, { runId }: OpenRun): Promise<void> {
    if ((await readRequest(this.#store, id, runId))?.group === undefined) return;
    throw new SessionError(
      "INVALID_OPTION",
      `Run ${runId} is a group's, which is told something by adding a turn to session ${id}.`,
    );
  }

  /**
   * Appends the request together with a cancel of the running run; if the request is already recorded, without the
   * cancel.
   */
  async #interrupt(id: string, asked: readonly AskDraft[], options: ActorOptions): Promise<AppendResult> {
    const guard = { status: "active" } as const;
    const draftsFor = async ({ openRuns }: SessionHead): Promise<readonly EntryDraft[]> => {
      const run = begunRun(openRuns);
      const repeated = run !== undefined && (await this.#store.getEntry(id, asked[0]?.id ?? "")) !== null;
      if (run === undefined || repeated || run.cancelled === true) return asked;
      return [cancelDraft(run.runId, "Another run takes its place."), ...asked];
    };
    return this.#atVersion(id, options, draftsFor, { guard });
  }

  async #questionOf({ header, openRuns }: SessionHead, question: string): Promise<EntryOf<"approval">> {
    const entry = await this.#store.getEntry(header.id, question);
    const isQuestion =
      entry?.type === "approval" &&
      entry.decision === undefined &&
      isOwn(header, entry, entry.seq) &&
      (!isInnerQuestion(entry) || (await this.#isAskedStill({ header, openRuns }, entry)));
    const run = isQuestion ? openRuns.find(({ runId }) => runId === entry.runId) : undefined;
    const given = isQuestion ? await this.#store.getEntry(header.id, answerIdOf(question)) : null;
    if (given !== null && given.type !== "approval") {
      const text = `Question ${show(question)} of session ${header.id} cannot be answered, since another entry has the id of its answer; cancel its run.`;
      throw new SessionError("CONFLICT", text);
    }
    const answered = given !== null;
    if (!isQuestion || (run === undefined && !answered)) {
      throw new SessionError(
        "QUESTION_NOT_FOUND",
        `No run of session ${header.id} waits for an answer to ${show(question)}; see the questions of its open runs.`,
      );
    }
    if (run !== undefined && !answered && isExpired(run, this.#clock().toISOString())) {
      const text = `Question ${show(question)} of session ${header.id} expired at ${run.expiresAt} and counts as denied.`;
      throw new SessionError("CONFLICT", text);
    }
    return entry;
  }

  /**
   * Whether the run inside a tool that asked a question is still alive: it ends with the process that holds the run.
   */
  async #isAskedStill(
    { header, openRuns }: Pick<SessionHead, "header" | "openRuns">,
    { id, runId }: EntryOf<"approval">,
  ): Promise<boolean> {
    const run = openRuns.find((open) => open.runId === runId);
    if (run?.innerQuestions?.includes(id) !== true)
      return (await this.#store.getEntry(header.id, answerIdOf(id))) !== null;
    return (await this.#store.leaseOf(header.id)) !== null;
  }

  /**
   * Appends the drafts computed from the session's present state; null drafts append nothing. Repeats if another writer
   * was faster.
   */
  async #atVersion<Drafts extends readonly EntryDraft[] | null>(
    id: string,
    options: ActorOptions,
    draftsFor: (head: SessionHead) => Drafts | Promise<Drafts>,
    rest: Pick<AppendOptions, "guard"> = {},
  ): Promise<AppendResult | Extract<Drafts, null>> {
    for (let tries = 1; ; tries++) {
      const head = await this.#sessions.prepare(id, options);
      const drafts = await draftsFor(head);
      if (drafts === null) return drafts as Extract<Drafts, null>;
      if (drafts.length === 0) return { version: head.version, entries: [], head };
      try {
        return await this.#append(id, drafts, options, { ...rest, expectedVersion: head.version });
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries === TRIES_MAX) throw error;
      }
    }
  }

  /** Appends, and makes a run of this process read the entries immediately. */
  async #append(
    id: string,
    drafts: readonly EntryDraft[],
    options: ActorOptions,
    rest: AppendOptions = {},
  ): Promise<AppendResult> {
    const result = await this.#store.append(id, drafts, { ...rest, ...byOf(options) });
    await pollFollowers(this.#store, id);
    return result;
  }
}

function cancelDraft(runId: string, reason: string | undefined): EntryDraft {
  return { type: "cancel", runId, ...defined({ reason }) };
}

/** An entry of a request, with an id that makes it idempotent. */
type AskDraft = EntryDraft & { readonly id: string };

function moveDrafts(runId: string, { from }: ManagedRunRequest): readonly AskDraft[] {
  return from === undefined ? [] : [{ type: "leaf", id: moveIdOf(runId), targetId: from }];
}

type RequestDraft = AskDraft & Extract<EntryDraft, { type: "run_request" }>;

function requestDraft(runId: string, request: ManagedRunRequest): RequestDraft {
  const { input, agent, group, model, options, notBefore, deadline } = request;
  const given = defined({ agent, group, model, options, notBefore, deadline });
  return { type: "run_request", id: requestIdOf(runId), runId, ...requestedInput(input), ...given };
}

function checkRequest(request: ManagedRunRequest): ManagedRunRequest {
  if (typeof request !== "object" || request === null) {
    throw new SessionError("INVALID_OPTION", "A request for a run is an object with an input.");
  }
  checkIfBusy(request.ifBusy ?? "reject");
  if (request.agent !== undefined && request.group !== undefined) {
    throw new SessionError("INVALID_OPTION", "A run is an agent's or a group's; leave out agent or group.");
  }
  if (request.group !== undefined && "messages" in requestedInput(request.input)) {
    throw new SessionError("INVALID_OPTION", "A group takes a text or content parts as its input, not messages.");
  }
  if (request.options !== undefined) checkLoopOptions(request.options);
  if (request.options?.["output"] !== undefined) {
    if (request.group !== undefined) throw new SessionError("INVALID_OPTION", "A group gives no output; ask an agent.");
    outputSchema(request.options["output"]);
  }
  return request;
}

function checkLoopOptions(options: JsonObject): void {
  const wrong =
    typeof options !== "object" || options === null
      ? options
      : Object.keys(options).find((key) => !REQUEST_OPTIONS.includes(key));
  if (wrong === undefined) return;
  throw new SessionError(
    "INVALID_OPTION",
    `A request for a run does not carry the option ${show(wrong)}; it takes ${REQUEST_OPTIONS.join(", ")}.`,
  );
}

/** @throws {SessionError} `INVALID_OPTION` for an invalid value. */
export function checkIfBusy(ifBusy: IfBusy): void {
  if (["reject", "enqueue", "interrupt"].includes(ifBusy)) return;
  throw new SessionError("INVALID_OPTION", `ifBusy is ${show(ifBusy)}; give "reject", "enqueue" or "interrupt".`);
}

function isCode(error: unknown, code: SessionError["code"]): boolean {
  return error instanceof SessionError && error.code === code;
}

/** Wakes waiters of this process for a session. Only an optimization: waiters also poll. */
class SessionSignal {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Wakes all waiters for a session. */
  emit(sessionId: string): void {
    for (const wake of this.#waiting.get(sessionId) ?? []) wake();
  }

  /** Resolves when the signal is emitted for the session, or after a timeout; rejects with the reason of an abort. */
  async wait(sessionId: string, ms: number, signal: AbortSignal): Promise<void> {
    let wake: () => void = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const waiting = this.#waiting.get(sessionId) ?? new Set();
    this.#waiting.set(sessionId, waiting.add(wake));
    const timer = setTimeout(wake, ms);
    try {
      await untilAborted(woken, signal);
    } finally {
      clearTimeout(timer);
      waiting.delete(wake);
      if (waiting.size === 0) this.#waiting.delete(sessionId);
    }
  }
}
