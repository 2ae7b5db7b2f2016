import { hostname } from "node:os";
import { defined } from "../internal/defined.ts";
import type { JsonObject, JsonValue } from "../internal/json.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { EntryOf } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import { answerIdOf } from "../session/log/open-runs.ts";
import type { LoopOptions, OnApproval, ParkOptions } from "./loop-options.ts";
import { type ApprovalDecision, type AskedBefore, decisionOf } from "./persist/resume-state.ts";
import type { Approval } from "../session/log/run-event.ts";
import { canBeFound, RunParked } from "./run-parked.ts";
import type { RunLog } from "./persist/run-log.ts";

const PARK_TRIES_MAX = 100;
/** The default time that a question waits if someone has subscribed to the events of its run. */
const WAIT_MS_DEFAULT = 30_000;
/** The longest delay of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Recorded for a question that could be shown to no one and could not wait. */
const NO_APPROVER: ApprovalDecision = { approved: false, reason: "This call needs approval, but no one can be asked." };
/** Recorded for a question of a run inside a tool that ended before it was answered. */
const RUN_ENDED: ApprovalDecision = { approved: false, reason: "The run that asked has ended." };

interface Waiting {
  readonly approval: Approval;
  readonly decided: Promise<ApprovalDecision>;
  readonly decide: (decision: ApprovalDecision) => void;
  readonly fail: (error: unknown) => void;
  deciding: boolean;
}

/** The options about waiting for answers. */
export interface ApprovalOptions extends Pick<LoopOptions, "park" | "onApproval"> {
  /** Whether anyone has subscribed to the events of the run. */
  readonly isFollowed: () => boolean;
}

/** A question of a run inside a tool. */
interface Relayed {
  readonly approval: Approval;
  readonly settle: (decision: ApprovalDecision) => Promise<void>;
}

/**
 * The questions of a run. A run inside a tool also asks in the enclosing run, and so on outwards, because clients that can answer follow
 * the outermost run.
 */
export class RunApprovals {
  readonly #log: RunLog;
  readonly #around: RunApprovals | null;
  readonly #options: ApprovalOptions;
  /** The waiting questions, by id. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #relayed = new Map<string, Relayed>();
  /** Answers to questions that do not wait yet. */
  readonly #heard = new Map<string, ApprovalDecision>();
  /** A referenced timer, so that the process does not exit while a question waits. */
  #timer: NodeJS.Timeout | undefined;
  /** Ends the time for which the present question waits; null if it waits without limit, or none waits. */
  #endWait: (() => void) | null = null;
  #parksEarly = false;
  /** Resolves when `onApproval` has answered the present question; it gets one question at a time. */
  #inHand: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(log: RunLog, around: RunApprovals | null, options: ApprovalOptions) {
    this.#log = log;
    this.#around = around;
    this.#options = options;
  }

  get pending(): readonly Approval[] {
    return [...this.#open, ...this.#relayed.values()].map(({ approval }) => approval);
  }

  /**
   * Asks for approval, unless an earlier claim already got an answer; its recorded question is reused. Resolves to the
   * id of the question.
   */
  async ask(
    asked: Omit<Approval, "question">,
    about: { readonly index: number; readonly digest: string },
    before: AskedBefore | undefined,
  ): Promise<string> {
    const approval: Approval = { ...asked, question: before?.question ?? uuidv7() };
    await this.#ask(approval, about, before);
    return approval.question;
  }

  async #ask(
    approval: Approval,
    about: { readonly index: number; readonly digest: string },
    before: AskedBefore | undefined,
  ): Promise<void> {
    const { runId, events, state } = this.#log;
    const waiting = waitingFor(approval);
    this.#waiting.set(approval.question, waiting);
    const heard = this.#heard.get(approval.question);
    if (heard !== undefined) return this.#settled(waiting, heard);
    if (before?.decision != null) {
      if (before.expired !== true) return this.#settled(waiting, before.decision);
      return this.#decide(waiting, before.decision).catch((error) => {
        // An answer arrived in the meantime.
        if (!waiting.deciding) throw error;
      });
    }
    if (before?.question == null) {
      const { callId, question: id, ...shown } = approval;
      const question = { type: "approval", id, runId, callId, ...about } as const;
      await this.#log.note([{ ...question, asked: shown as unknown as JsonObject }]);
    } else events.add({ type: "approval-required", round: state.round, approval }, "repeated");
    this.#relayAnswer(approval);
  }

  /**
   * Waits for the decision about a question.
   *
   * @throws {RunParked} if there was no answer and the run released its session.
   * @throws {SessionError} `APPROVAL_NEEDED` if there was no answer and the run is not stored.
   */
  async decisionOn(question: string): Promise<ApprovalDecision> {
    const waiting = this.#waiting.get(question) as Waiting;
    if (!waiting.deciding) this.#wait(waiting);
    try {
      return await waiting.decided;
    } finally {
      clearTimeout(this.#timer);
      this.#endWait = null;
      this.#waiting.delete(waiting.approval.question);
    }
  }

  /** From here on, questions do not wait for the time after which the run parks. */
  parkEarly(): void {
    this.#parksEarly = true;
    if (this.#endWait === null) return;
    clearTimeout(this.#timer);
    this.#endWait();
  }

  /** Answers a question, by its id or that of its call; resolves once the answer is recorded. */
  async settle(questionOrCallId: string, decision: ApprovalDecision): Promise<void> {
    if (this.#ended) {
      throw new SessionError(
        "RUN_ENDED",
        `Run ${this.#log.runId} has ended or is parked; answer a parked one with manager.approve or manager.deny.`,
      );
    }
    const own = this.#waiting.get(questionOrCallId) ?? this.#relayed.get(questionOrCallId);
    const found = own === undefined ? this.#openFor(questionOrCallId) : [own];
    const [only] = found;
    if (only === undefined || ("deciding" in only && only.deciding)) {
      throw this.#refusal(`No call ${show(questionOrCallId)} waits for approval`);
    }
    if (found.length > 1)
      throw this.#refusal(`${found.length} calls ${show(questionOrCallId)} wait: name the question`);
    if (!("settle" in only)) return await this.#decide(only, decision);
    await this.#note(only.approval, decision);
    await only.settle(decision);
  }

  /** Takes an answer that someone else recorded. */
  receive(answer: EntryOf<"approval">): void {
    const { question, decision } = answer;
    if (question === undefined || decision === undefined) return;
    const relayed = this.#relayed.get(question);
    // The run that asked may have its answer already, or may have just ended.
    if (relayed !== undefined) return void relayed.settle(decisionOf(decision, answer)).catch(() => {});
    const waiting = this.#waiting.get(question);
    // A recovered run may receive the answer before it reaches the question again.
    if (waiting === undefined) this.#heard.set(question, decisionOf(decision, answer));
    else this.#settled(waiting, decisionOf(decision, answer));
  }

  /** Stops all waiting. The questions stay recorded, for the process that recovers the run. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const question of [...this.#waiting.keys(), ...this.#relayed.keys()])
      this.#settledByEnclosing(question, RUN_ENDED);
    this.#waiting.clear();
    this.#relayed.clear();
  }

  get #open(): readonly Waiting[] {
    return [...this.#waiting.values()].filter(({ deciding }) => !deciding);
  }

  #openFor(callId: string): readonly (Waiting | Relayed)[] {
    return [...this.#open, ...this.#relayed.values()].filter(({ approval }) => approval.callId === callId);
  }

  #refusal(problem: string): SessionError {
    return new SessionError("INVALID_OPTION", `${problem} in run ${this.#log.runId}; see pendingApprovals.`);
  }

  #relayAnswer(approval: Approval): void {
    const { question } = approval;
    if (this.#around === null) return;
    const innerRunId = approval.innerRunId ?? this.#log.runId;
    const settle = (decision: ApprovalDecision): Promise<void> => this.settle(question, decision);
    // A run whose log accepts nothing more fails on its own.
    this.#around.#relay({ approval: { ...approval, innerRunId }, settle }).catch(() => {});
  }

  /**
   * A question of a run inside a tool is also recorded in this run's log, so that clients that can answer find it there.
   */
  async #relay(relayed: Relayed): Promise<void> {
    if (this.#ended) return;
    const { callId, question: id, ...shown } = relayed.approval;
    const { runId } = this.#log;
    this.#relayed.set(id, relayed);
    await this.#log.note([{ type: "approval", id, runId, callId, asked: shown as unknown as JsonObject }]);
    if (this.#relayed.has(id)) this.#relayAnswer(relayed.approval);
  }

  #settledByEnclosing(question: string, decision: ApprovalDecision): void {
    const around = this.#around;
    if (around === null) return;
    const approval = around.#relayed.get(question)?.approval;
    if (approval === undefined) return;
    around.#relayed.delete(question);
    const { callId } = approval;
    // The answer may be recorded already: it may have come from there.
    around.#note(approval, decision).catch(() => {});
    around.#log.events.add({ type: "approval-settled", round: around.#log.state.round, callId, question });
    around.#settledByEnclosing(question, decision);
  }

  /** Records an answer, also in the log of an enclosing run, with its author, so that erasing the author finds it. */
  #note({ callId, question }: Approval, given: ApprovalDecision): Promise<void> {
    const { runId } = this.#log;
    const { by, ...decision }: ApprovalDecision & { readonly by?: string } = given;
    const answer = { id: answerIdOf(question), runId, callId, question, decision: decision as JsonValue };
    return this.#log.note([{ type: "approval", ...answer, ...defined({ by }) }], { alone: true });
  }

  /** Waits for an answer as long as the outermost run allows, because that is where someone may answer. */
  #wait(waiting: Waiting): void {
    const { runs, park } = this.#chain;
    const asker = runs.findLast((run) => run.#options.onApproval !== undefined);
    if (asker !== undefined) void this.#askInPlace(waiting, asker).catch(waiting.fail);
    if (park === false || (park === undefined && asker !== undefined)) this.#waitOn();
    else {
      const afterMs = park?.afterMs ?? (runs.some((run) => run.#options.isFollowed()) ? WAIT_MS_DEFAULT : 0);
      this.#endWait = () => {
        this.#endWait = null;
        void this.#stopWaiting(waiting, park).catch(waiting.fail);
      };
      this.#timer = setTimeout(this.#endWait, this.#parksEarly ? 0 : afterMs);
    }
  }

  #waitOn(): void {
    this.#timer = setInterval(() => {}, TIMER_MS_MAX);
  }

  /** This run and the enclosing ones, outermost last, and how long the outermost waits. */
  get #chain(): { readonly runs: readonly RunApprovals[]; readonly park: LoopOptions["park"] } {
    const runs: RunApprovals[] = [this];
    let outermost: RunApprovals = this;
    for (; outermost.#around !== null; runs.push(outermost)) outermost = outermost.#around;
    return { runs, park: outermost.#options.park };
  }

  async #askInPlace(waiting: Waiting, asker: RunApprovals): Promise<void> {
    const { approval } = waiting;
    const asked = asker === this ? approval : { ...approval, innerRunId: this.#log.runId };
    const earlier = asker.#inHand;
    const isSettled = (): boolean => waiting.deciding || this.#ended;
    const answering = earlier.then(async () => {
      if (isSettled()) return null;
      return answerOf(await (asker.#options.onApproval as OnApproval)(asked));
    });
    const done = (): void => {};
    asker.#inHand = answering.then(done, done);
    const decision = await answering;
    if (decision === null || isSettled()) return;
    await this.#decide(waiting, decision).catch((error) => {
      // Someone else may have answered first.
      if (!waiting.deciding) throw error;
    });
  }

  /**
   * Parks the run. If it cannot park, it fails or the call is denied, unless someone may answer from another process.
   */
  async #stopWaiting(waiting: Waiting, park: ParkOptions | undefined): Promise<void> {
    const { output, parks, kept } = this.#log;
    const isOutermost = this.#around === null;
    if (waiting.deciding || this.#ended) return;
    if (isOutermost && !kept) throw this.#neededError(waiting);
    const mayPark = isOutermost && this.#relayed.size === 0 && parks && (await canBeFound(output));
    if (waiting.deciding || this.#ended) return;
    if (mayPark) await this.#park(waiting, park?.expireMs);
    else if (park === undefined) await this.#decide(waiting, NO_APPROVER);
    else this.#waitOn();
  }

  #neededError({ approval: { name, callId } }: Waiting): SessionError {
    const { runId } = this.#log;
    return new SessionError(
      "APPROVAL_NEEDED",
      `Run ${runId} needs approval of the call ${show(callId)} of ${show(name)} and got none: give onApproval, or keep the run with manager.run or persist, so that it parks until manager.approve.`,
    );
  }

  /** Records which questions are open, once no other append is in progress. */
  async #park(waiting: Waiting, expireMs: number | undefined): Promise<void> {
    const { output } = this.#log;
    const host = output.sandboxPlacement?.backend === "local" ? { host: hostname() } : {};
    // An entry that others append at the same time may be the answer.
    for (let tries = 0; tries < PARK_TRIES_MAX && !waiting.deciding && !this.#ended; tries++) {
      const expiry = expireMs === undefined ? {} : { expiresAt: new Date(Date.now() + expireMs).toISOString() };
      let approvals: readonly Approval[] = [];
      const factNow = () => {
        if (waiting.deciding || this.#ended) return null;
        approvals = this.#open.map(({ approval }) => approval);
        return { questions: approvals.map(({ callId, question }) => ({ callId, question })), ...expiry, ...host };
      };
      await this.#log.park(factNow, () => {
        this.#ended = true;
        waiting.fail(new RunParked(approvals));
      });
    }
  }

  async #decide(waiting: Waiting, decision: ApprovalDecision): Promise<void> {
    waiting.deciding = true;
    try {
      await this.#note(waiting.approval, decision);
    } catch (error) {
      waiting.deciding = false;
      // If someone else answered first, that answer counts.
      await this.#log.poll().catch(() => {});
      throw error;
    }
    this.#settled(waiting, decision);
  }

  #settled(waiting: Waiting, decision: ApprovalDecision): void {
    waiting.deciding = true;
    this.#settledByEnclosing(waiting.approval.question, decision);
    waiting.decide(decision);
  }
}

/**
 * Converts what `onApproval` returned. @throws {SessionError} `INVALID_OPTION` for anything that is neither an approval
 * nor a denial.
 */
function answerOf(answer: unknown): ApprovalDecision {
  const given = typeof answer === "boolean" ? { approved: answer } : answer;
  const { approved, reason = null } = (given ?? {}) as { readonly approved?: unknown; readonly reason?: unknown };
  const isAnswer = typeof approved === "boolean" && (reason === null || typeof reason === "string");
  if (!isAnswer) {
    const problem = `onApproval gave ${show(answer)}; return true, false or { approved, reason }.`;
    throw new SessionError("INVALID_OPTION", problem);
  }
  return approved ? { approved } : { approved, reason };
}

function waitingFor(approval: Approval): Waiting {
  let decide: Waiting["decide"] = () => {};
  let fail: Waiting["fail"] = () => {};
  const decided = new Promise<ApprovalDecision>((resolve, reject) => {
    decide = resolve;
    fail = reject;
  });
  // If the run ends in the meantime, nothing awaits this promise.
  decided.catch(() => {});
  return { approval, decided, decide, fail, deciding: false };
}
