import type { JsonValue } from "../internal/json.ts";
import { SessionError, show } from "../session/errors.ts";
import type { ApprovalDecision } from "./resume-state.ts";
import type { Approval } from "./run-event.ts";
import type { RunProgress } from "./run-progress.ts";

interface Waiting {
  readonly approval: Approval;
  readonly decided: Promise<ApprovalDecision>;
  readonly decide: (decision: ApprovalDecision) => void;
  deciding: boolean;
}

/** A question of a run inside of a tool. */
interface Relayed {
  readonly approval: Approval;
  readonly settle: (decision: ApprovalDecision) => Promise<void>;
}

/**
 * The calls of a run that a person must agree to.
 *
 * A run that a tool starts asks in the run of that tool too, and so on outwards, since whoever can answer follows the
 * outermost one. There, the id of the inner run stands before the call's, as both may have a call of one id.
 */
export class RunApprovals {
  /** The round that the run is in. */
  round = 0;
  readonly #progress: RunProgress;
  readonly #around: RunApprovals | null;
  readonly #waiting = new Map<string, Waiting>();
  readonly #relayed = new Map<string, Relayed>();
  #ended = false;

  constructor(progress: RunProgress, around: RunApprovals | null = null) {
    this.#progress = progress;
    this.#around = around;
  }

  get pending(): readonly Approval[] {
    const own = [...this.#waiting.values()].filter(({ deciding }) => !deciding);
    return [...own, ...this.#relayed.values()].map(({ approval }) => approval);
  }

  /** Asks for a person's word; what an earlier run was told already counts. */
  async ask(approval: Approval, earlier: ApprovalDecision | null | undefined): Promise<void> {
    const { runId } = this.#progress;
    // What was decided already waits for nobody, also while that is being put on record anew.
    const waiting = waitingFor(approval, earlier != null);
    this.#waiting.set(approval.callId, waiting);
    await this.#progress.note([{ type: "approval", runId, callId: approval.callId }]);
    if (earlier != null) {
      await this.#decide(waiting, earlier);
    } else {
      this.#progress.events.add({ type: "approval-required", round: this.round, approval });
      this.#tellAround(approval);
    }
  }

  /** The word on a call that was asked about. */
  async decisionOn(callId: string): Promise<ApprovalDecision> {
    const waiting = this.#waiting.get(callId) as Waiting;
    const decision = await waiting.decided;
    this.#waiting.delete(callId);
    return decision;
  }

  /** Resolves once the word is on record. */
  async settle(callId: string, decision: ApprovalDecision): Promise<void> {
    const waiting = this.#waiting.get(callId);
    if (this.#ended) throw new SessionError("RUN_ENDED", `Run ${this.#progress.runId} has ended; resume it first.`);
    const relayed = this.#relayed.get(callId);
    if (waiting === undefined && relayed !== undefined) return relayed.settle(decision);
    if (waiting === undefined || waiting.deciding) {
      throw new SessionError(
        "INVALID_OPTION",
        `No call ${show(callId)} waits for approval in run ${this.#progress.runId}; see pendingApprovals.`,
      );
    }
    await this.#decide(waiting, decision);
  }

  /** Nothing waits any longer. What was asked stays on record, for a resume. */
  end(): void {
    this.#ended = true;
    for (const callId of [...this.#waiting.keys(), ...this.#relayed.keys()]) this.#settledAround(callId);
    this.#waiting.clear();
    this.#relayed.clear();
  }

  #tellAround(approval: Approval): void {
    const { callId } = approval;
    const settle = (decision: ApprovalDecision): Promise<void> => this.settle(callId, decision);
    if (this.#around === null) return;
    const innerRunId = approval.innerRunId ?? this.#progress.runId;
    this.#around.#relay({ approval: { ...approval, callId: this.#idAround(callId), innerRunId }, settle });
  }

  #relay(relayed: Relayed): void {
    if (this.#ended) return;
    this.#relayed.set(relayed.approval.callId, relayed);
    this.#progress.events.add({ type: "approval-required", round: this.round, approval: relayed.approval });
    this.#tellAround(relayed.approval);
  }

  #settledAround(callId: string): void {
    const around = this.#around;
    const id = this.#idAround(callId);
    if (around === null || !around.#relayed.delete(id)) return;
    around.#progress.events.add({ type: "approval-settled", round: around.round, callId: id });
    around.#settledAround(id);
  }

  #idAround(callId: string): string {
    return `${this.#progress.runId}/${callId}`;
  }

  async #decide(waiting: Waiting, decision: ApprovalDecision): Promise<void> {
    const { runId } = this.#progress;
    waiting.deciding = true;
    try {
      await this.#progress.note([
        { type: "approval", runId, callId: waiting.approval.callId, decision: decision as unknown as JsonValue },
      ]);
    } catch (error) {
      waiting.deciding = false;
      throw error;
    }
    this.#settledAround(waiting.approval.callId);
    waiting.decide(decision);
  }
}

function waitingFor(approval: Approval, deciding: boolean): Waiting {
  let decide: (decision: ApprovalDecision) => void = () => {};
  const decided = new Promise<ApprovalDecision>((resolve) => {
    decide = resolve;
  });
  return { approval, decided, decide, deciding };
}
