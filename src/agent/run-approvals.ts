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

/** The calls of a run that a person must agree to. */
export class RunApprovals {
  readonly #progress: RunProgress;
  readonly #waiting = new Map<string, Waiting>();
  #ended = false;

  constructor(progress: RunProgress) {
    this.#progress = progress;
  }

  get pending(): readonly Approval[] {
    return [...this.#waiting.values()].filter(({ deciding }) => !deciding).map(({ approval }) => approval);
  }

  /** Asks for a person's word; what an earlier run was told already counts. */
  async ask(approval: Approval, earlier: ApprovalDecision | null | undefined, round: number): Promise<void> {
    const { runId } = this.#progress;
    // What was decided already waits for nobody, also while that is being put on record anew.
    const waiting = waitingFor(approval, earlier != null);
    this.#waiting.set(approval.callId, waiting);
    await this.#progress.note([{ type: "approval", runId, callId: approval.callId }]);
    if (earlier != null) {
      await this.#decide(waiting, earlier);
    } else {
      this.#progress.events.add({ type: "approval-required", round, approval });
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
    this.#waiting.clear();
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
