import { hostname } from "node:os";
import type { JsonObject, JsonValue } from "../internal/json.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { EntryOf } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import { answerIdOf } from "../session/log/open-runs.ts";
import type { ParkOptions } from "./loop-options.ts";
import { type ApprovalDecision, type AskedBefore, decisionOf } from "./persist/resume-state.ts";
import type { Approval } from "./run-event.ts";
import { canBeFound, RunParked } from "./run-parked.ts";
import type { RunProgress } from "./run-progress.ts";

const PARK_TRIES_MAX = 100;
const EXPIRE_MS_DEFAULT = 7 * 24 * 3_600_000;

interface Waiting {
  readonly approval: Approval;
  readonly decided: Promise<ApprovalDecision>;
  readonly decide: (decision: ApprovalDecision) => void;
  readonly fail: (error: unknown) => void;
  deciding: boolean;
}

/** A question of a run inside of a tool. */
interface Relayed {
  readonly approval: Approval;
  readonly settle: (decision: ApprovalDecision) => Promise<void>;
}

/**
 * The calls of a run that a person must agree to. A run that a tool starts asks in the run of that tool too, and so on
 * outwards, since whoever can answer follows the outermost one.
 */
export class RunApprovals {
  /** The round that the run is in. */
  round = 0;
  readonly #progress: RunProgress;
  readonly #around: RunApprovals | null;
  readonly #parkOptions: ParkOptions | null;
  /** By their questions. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #relayed = new Map<string, Relayed>();
  /** Answers to questions that are not waited for yet. */
  readonly #heard = new Map<string, ApprovalDecision>();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(progress: RunProgress, around: RunApprovals | null, park: ParkOptions | null) {
    this.#progress = progress;
    this.#around = around;
    this.#parkOptions = park;
  }

  get pending(): readonly Approval[] {
    return [...this.#open, ...this.#relayed.values()].map(({ approval }) => approval);
  }

  /** Asks for a person's word, unless an earlier run was told already; what it asked is not asked again. */
  async ask(asked: Omit<Approval, "question">, before: AskedBefore | undefined): Promise<void> {
    const { runId, events } = this.#progress;
    const approval: Approval = { ...asked, question: before?.question ?? uuidv7() };
    const waiting = waitingFor(approval);
    this.#waiting.set(approval.question, waiting);
    const heard = this.#heard.get(approval.question);
    if (heard !== undefined) return this.#settled(waiting, heard);
    if (before?.decision != null) {
      if (before.expired !== true) return this.#settled(waiting, before.decision);
      return this.#decide(waiting, before.decision).catch((error) => {
        // Someone has answered after all.
        if (!waiting.deciding) throw error;
      });
    }
    if (before?.question == null) {
      const { callId, question: id, ...shown } = approval;
      await this.#progress.note([{ type: "approval", id, runId, callId, asked: shown as unknown as JsonObject }]);
    }
    events.add({ type: "approval-required", round: this.round, approval });
    this.#tellAround(approval);
  }

  /** The word on a call that was asked about. @throws {RunParked} when none came and the run has let go of its session. */
  async decisionOn(callId: string): Promise<ApprovalDecision> {
    const waiting = [...this.#waiting.values()].find(({ approval }) => approval.callId === callId) as Waiting;
    if (this.#parkOptions !== null && !waiting.deciding) this.#parkLater(waiting, this.#parkOptions);
    try {
      return await waiting.decided;
    } finally {
      clearTimeout(this.#timer);
      this.#waiting.delete(waiting.approval.question);
    }
  }

  /** Answers a question, by its id or that of its call; resolves once the word is on record. */
  async settle(questionOrCallId: string, decision: ApprovalDecision): Promise<void> {
    if (this.#ended) {
      throw new SessionError(
        "RUN_ENDED",
        `Run ${this.#progress.runId} has ended or is parked; answer a parked one with manager.approve or manager.deny.`,
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
    await ("settle" in only ? only.settle(decision) : this.#decide(only, decision));
  }

  /** Takes an answer that someone else has put on record. */
  hear({ question, decision, note }: EntryOf<"approval">): void {
    if (question === undefined || decision === undefined) return;
    const waiting = this.#waiting.get(question);
    // A run that goes on may hear the answer before it has come to the question again.
    if (waiting === undefined) this.#heard.set(question, decisionOf(decision, note));
    else this.#settled(waiting, decisionOf(decision, note));
  }

  /** Nothing waits any longer. What was asked stays on record, for whoever recovers the run. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const question of [...this.#waiting.keys(), ...this.#relayed.keys()]) this.#settledAround(question);
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
    return new SessionError("INVALID_OPTION", `${problem} in run ${this.#progress.runId}; see pendingApprovals.`);
  }

  #tellAround(approval: Approval): void {
    const { question } = approval;
    if (this.#around === null) return;
    const innerRunId = approval.innerRunId ?? this.#progress.runId;
    const settle = (decision: ApprovalDecision): Promise<void> => this.settle(question, decision);
    this.#around.#relay({ approval: { ...approval, innerRunId }, settle });
  }

  #relay(relayed: Relayed): void {
    if (this.#ended) return;
    this.#relayed.set(relayed.approval.question, relayed);
    this.#progress.events.add({ type: "approval-required", round: this.round, approval: relayed.approval });
    this.#tellAround(relayed.approval);
  }

  #settledAround(question: string): void {
    const around = this.#around;
    if (around === null) return;
    const callId = around.#relayed.get(question)?.approval.callId;
    if (callId === undefined || !around.#relayed.delete(question)) return;
    around.#progress.events.add({ type: "approval-settled", round: around.round, callId, question });
    around.#settledAround(question);
  }

  #parkLater(waiting: Waiting, { afterMs, expireMs = EXPIRE_MS_DEFAULT }: ParkOptions): void {
    this.#timer = setTimeout(() => void this.#park(waiting, expireMs).catch(waiting.fail), afterMs);
  }

  /** Puts on record which questions are open, once nothing else is being written. */
  async #park(waiting: Waiting, expireMs: number): Promise<void> {
    const { output, sink } = this.#progress;
    if (this.#relayed.size > 0 || sink?.park === undefined || !(await canBeFound(output))) return;
    const host = output.sandboxPlacement?.backend === "local" ? { host: hostname() } : {};
    // What others say at the same moment may be the answer.
    for (let tries = 0; tries < PARK_TRIES_MAX && !waiting.deciding && !this.#ended; tries++) {
      const expiresAt = new Date(Date.now() + expireMs).toISOString();
      let approvals: readonly Approval[] = [];
      const factNow = () => {
        if (waiting.deciding || this.#ended) return null;
        approvals = this.#open.map(({ approval }) => approval);
        return { questions: approvals.map(({ callId, question }) => ({ callId, question })), expiresAt, ...host };
      };
      await this.#progress.park(factNow, () => {
        this.#ended = true;
        waiting.fail(new RunParked(approvals, expiresAt));
      });
    }
  }

  async #decide(waiting: Waiting, decision: ApprovalDecision): Promise<void> {
    const { runId } = this.#progress;
    const { callId, question } = waiting.approval;
    const answer = { id: answerIdOf(question), runId, callId, question, decision: decision as unknown as JsonValue };
    waiting.deciding = true;
    try {
      await this.#progress.note([{ type: "approval", ...answer }], { alone: true });
    } catch (error) {
      waiting.deciding = false;
      // Where someone else has answered before, that counts.
      await this.#progress.sink?.look?.().catch(() => {});
      throw error;
    }
    this.#settled(waiting, decision);
  }

  #settled(waiting: Waiting, decision: ApprovalDecision): void {
    waiting.deciding = true;
    this.#settledAround(waiting.approval.question);
    waiting.decide(decision);
  }
}

function waitingFor(approval: Approval): Waiting {
  let decide: Waiting["decide"] = () => {};
  let fail: Waiting["fail"] = () => {};
  const decided = new Promise<ApprovalDecision>((resolve, reject) => {
    decide = resolve;
    fail = reject;
  });
  // A run that ends meanwhile leaves nobody to wait for it.
  decided.catch(() => {});
  return { approval, decided, decide, fail, deciding: false };
}
