import type { Approval, RunEvent } from "../../../agent/run-event.ts";
import type { GroupEvent } from "../../../group/group-event.ts";
import { SessionError, show } from "../../../session/errors.ts";
import type { Content } from "../../../session/message.ts";
import type { Problem, RunView } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { problemOf } from "../problem.ts";
import { RunEvents } from "./run-events.ts";
import { wireEvent } from "./wire-event.ts";

/** A run that was started, of an agent or of a group. */
export interface StartedRun {
  /** The id that the log has it under. */
  readonly runId: string;
  /** The id that `drainRuns` knows it by. */
  readonly drainId: string;
  readonly events: AsyncIterable<RunEvent | GroupEvent>;
  /** Resolves when it has the session, and never rejects. */
  readonly admitted: Promise<void>;
  abort(reason?: string): void;
  approve(callId: string): Promise<void>;
  deny(callId: string, reason?: string): Promise<void>;
  /** Null where nothing can be said to a run that goes on. */
  readonly steer: ((content: Content) => Promise<void>) | null;
  readonly followUp: ((content: Content) => Promise<void>) | null;
}

/** What is known of a run before it is started. */
export interface RunAbout {
  readonly sessionId: string;
  /** Whose session it is. */
  readonly userId: string | null;
  /** Who started it, and so whose runs it is one of. */
  readonly startedBy: string;
  readonly agent: string | null;
  readonly group: string | null;
}

/** A run of this server: what happens in it, for any number of readers, and how it stands. */
export class HostedRun {
  readonly runId: string;
  readonly about: RunAbout;
  readonly events: RunEvents;
  /** Resolves when the run has ended and its last event is there; never rejects. */
  readonly ended: Promise<void>;
  readonly #startedAt: string = new Date().toISOString();
  readonly #approvals = new Map<string, Approval>();
  /** Null once it has ended, so that what it held is free. */
  #run: StartedRun | null;
  #hasSession = false;
  #status: RunView["status"] = "running";
  #endedAt: string | null = null;
  #problem: Problem | null = null;

  constructor(run: StartedRun, about: RunAbout, report: (error: unknown) => void) {
    this.runId = run.runId;
    this.events = new RunEvents(run.runId);
    this.about = about;
    this.#run = run;
    void run.admitted.then(() => {
      this.#hasSession = true;
    });
    this.ended = this.#follow(run, report);
  }

  get pending(): boolean {
    return this.#run !== null;
  }

  /** Whether it has its session now, and does not wait for it. */
  get hasSession(): boolean {
    return this.pending && this.#hasSession;
  }

  get drainId(): string | null {
    return this.#run?.drainId ?? null;
  }

  view(): RunView {
    return {
      runId: this.runId,
      sessionId: this.about.sessionId,
      agent: this.about.agent,
      group: this.about.group,
      status: this.#status,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      approvals: [...this.#approvals.values()],
      problem: this.#problem,
    };
  }

  /** Stops it; resolves when it has ended, also when it had before. */
  async abort(reason?: string): Promise<void> {
    this.#run?.abort(reason);
    await this.ended;
  }

  /** @throws {HttpError} `CALL_NOT_FOUND` when no such call waits for a word. */
  async decide(questionOrCallId: string, { approve, reason }: { approve: boolean; reason?: string }): Promise<void> {
    const run = this.#running();
    const asked = [...this.#approvals.values()];
    const approval = asked.find(({ question, callId }) => [question, callId].includes(questionOrCallId));
    if (approval === undefined) {
      const call = show(questionOrCallId);
      throw new HttpError("CALL_NOT_FOUND", `No call ${call} of run ${this.runId} waits for approval.`);
    }
    await (approve ? run.approve(questionOrCallId) : run.deny(questionOrCallId, reason));
    this.#approvals.delete(approval.question);
  }

  /** Says something while it goes on; resolves once that is on record. */
  async say(how: "steer" | "followUp", content: Content): Promise<void> {
    const say = this.#running()[how];
    if (say === null) {
      throw new SessionError(
        "INVALID_OPTION",
        `Run ${this.runId} is a group's, which is told something by adding a turn to its session.`,
      );
    }
    await say(content);
  }

  #running(): StartedRun {
    if (this.#run === null) throw new SessionError("RUN_ENDED", `Run ${this.runId} has ended.`);
    return this.#run;
  }

  async #follow(run: StartedRun, report: (error: unknown) => void): Promise<void> {
    try {
      for await (const event of run.events) {
        this.#take(event, report);
        this.events.add(wireEvent(event));
      }
    } catch (error) {
      report(error);
      this.#fail(error);
    } finally {
      this.#run = null;
      this.#approvals.clear();
      this.#endedAt = new Date().toISOString();
      this.events.end();
    }
  }

  /** A call of the run itself waits no longer. */
  #started(id: string): void {
    for (const { question, callId, innerRunId } of this.#approvals.values())
      if (callId === id && innerRunId === undefined) this.#approvals.delete(question);
  }

  #take(event: RunEvent | GroupEvent, report: (error: unknown) => void): void {
    if (event.type === "approval-required") this.#approvals.set(event.approval.question, event.approval);
    if (event.type === "approval-settled") this.#approvals.delete(event.question);
    if (event.type === "tool-started" || event.type === "tool-finished") this.#started(event.callId);
    // What an agent of a group does is not the end of the group.
    if ("agent" in event) return;
    if (event.type === "run-finished") this.#status = "finished";
    if (event.type === "group-finished") {
      const { outcome } = event;
      if (outcome.reason === "agent-failed") this.#fail(outcome.error.cause);
      else this.#status = "finished";
    }
    if (event.type !== "run-failed" && event.type !== "group-failed") return;
    const { cause } = event.error;
    this.#fail(cause);
    if (!(cause instanceof SessionError)) report(cause);
  }

  #fail(error: unknown): void {
    const aborted = error instanceof SessionError && error.code === "ABORTED";
    this.#status = aborted ? "aborted" : "failed";
    this.#problem = aborted ? null : problemOf(error);
  }
}
