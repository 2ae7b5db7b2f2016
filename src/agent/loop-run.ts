import { setMaxListeners } from "node:events";
import { defined } from "../internal/defined.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { LeaseLostError, SessionBusyError, SessionError, StoreUnreachableError } from "../session/errors.ts";
import type { Lineage } from "../session/log/header.ts";
import type { Content } from "../session/message.ts";
import type { Payer } from "../session/payer.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import type { Transcript } from "../session/value/transcript.ts";
import { trackRun } from "./active-runs.ts";
import { describeThrown } from "./describe-thrown.ts";
import { EventLog, type EventListener } from "./event-log.ts";
import { followAbort } from "./follow-abort.ts";
import type { LoopOptions } from "./loop-options.ts";
import type { GivenOutput } from "./output/run-output.ts";
import { resumedRunId, sessionIdOf } from "./persist/open-run-log.ts";
import { RunApprovals } from "./run-approvals.ts";
import { RunDeadline } from "./run-deadline.ts";
import { errorRecord, runErrorOf } from "./run-error.ts";
import type { RunEvent } from "./run-event.ts";
import type { Approval, RunError } from "../session/log/run-event.ts";
import { RunInputs } from "./run-inputs.ts";
import { RunSpending } from "./run-spending.ts";
import { isInside, runInside, runsAround } from "./run-inside.ts";
import { keepsFiles, RunParked } from "./run-parked.ts";
import { type RunBeginning, RunLog, type RunOutcome } from "./persist/run-log.ts";
import type { RunMessage } from "./persist/log-follower.ts";
import type { Answer, RunStatus, SessionRun } from "./session-run.ts";
import { stricterOf, type AskPolicy } from "./tools/ask-policy.ts";

/** How often recording the end of a run is retried because others append at the same time. */
const END_TRIES_MAX = 100;

/** The work of a run after its input is recorded. */
export interface RunWork {
  /** Performs the run and calls `finish`. */
  perform(run: LoopRun): Promise<void>;
  /** Called when the run was stopped, before its end is recorded. */
  stopped?(): Promise<void>;
}

/** Options of a new run. */
export interface RunStart {
  /** The session that the run starts from. */
  readonly source: Session;
  readonly output: Session;
  readonly options: Pick<
    LoopOptions,
    | "onEvent"
    | "signal"
    | "persist"
    | "register"
    | "ask"
    | "runId"
    | "deadline"
    | "park"
    | "onApproval"
    | "sandboxHandleId"
    | "leaseMs"
  >;
  readonly work: RunWork;
}

/** The outcome of a run. */
export interface RunEnd {
  readonly truncated: boolean;
  /** The structured output, if one was requested. */
  readonly given: GivenOutput | null;
}

/** A run in progress; the constructor starts it. */
export class LoopRun implements SessionRun {
  readonly log: RunLog;
  readonly inputs: RunInputs;
  readonly approvals: RunApprovals;
  /** Which calls need approval. A run inside a tool is never less strict than the run of that tool. */
  readonly ask: AskPolicy | undefined;
  readonly #controller = new AbortController();
  readonly #done: Promise<Answer<undefined>>;
  readonly #work: RunWork;
  readonly #source: Session;
  readonly #deadline: RunDeadline;
  readonly #admission = admission();
  readonly #sessionId: string | null;
  readonly #leaseMs: number | undefined;
  /** The payer of the run, and of the runs inside its tools. */
  #payer: Payer | null;
  #spending: RunSpending | null = null;
  #status: RunStatus = "running";
  #abandoned = false;

  constructor({ source, output, options, work }: RunStart) {
    const { onEvent, signal: callersSignal, persist = false, register = true } = options;
    const runId = options.runId ?? resumedRunId(persist, source.transcript) ?? uuidv7();
    const events = new EventLog<RunEvent>({
      runId,
      listener: onEvent,
      report: (error) => process.emitWarning(`A listener of run ${output.id} failed: ${describeThrown(error)}`),
      position: () => this.log.position,
    });
    const { signal } = this.#controller;
    // Every tool of a round listens to this signal, so there is no upper limit of listeners.
    setMaxListeners(0, signal);
    // Adds the shared listener now; adding it later, during the run, would be slower.
    followAbort(signal, () => {});
    const { sandboxHandleId } = options;
    this.log = new RunLog({ runId, output, events, signal, kept: persist !== false, sandboxHandleId });
    this.inputs = new RunInputs(this.log);
    const around = runsAround().findLast((run) => run instanceof LoopRun) ?? null;
    this.ask = stricterOf(options.ask, around?.ask);
    this.#payer = around?.payer ?? null;
    this.#leaseMs = options.leaseMs;
    const { park, onApproval } = options;
    const ask = onApproval && ((question: Approval) => this.inside(() => onApproval(question)));
    this.approvals = new RunApprovals(this.log, around?.approvals ?? null, {
      ...defined({ park, onApproval: ask }),
      isFollowed: () => this.log.isFollowed,
    });
    this.#deadline = new RunDeadline(options.deadline, (error) => this.#controller.abort(error));
    this.#work = work;
    this.#source = source;
    this.#sessionId = sessionIdOf(persist);
    if (register) sessionRegistry.register(output);
    this.#done = this.#run(callersSignal);
    const ended = this.#done.then(
      () => {},
      () => {},
    );
    if (register) void ended.then(() => sessionRegistry.finish(output.id));
    const parkEarly = (): void => this.approvals.parkEarly();
    trackRun({ id: output.id, ended, abandon: () => this.#abandon(ended), parkEarly });
  }

  get id(): string {
    return this.log.output.id;
  }

  get sessionId(): string | null {
    return this.log.sessionId ?? this.#sessionId;
  }

  get lineage(): Lineage {
    return this.log.output.lineage;
  }

  get sandbox(): Sandbox | null {
    return this.log.output.sandbox;
  }

  get transcript(): Transcript {
    return this.log.output.transcript;
  }

  get runId(): string {
    return this.log.runId;
  }

  get status(): RunStatus {
    return this.#status;
  }

  get admitted(): Promise<void> {
    return this.#admission.admitted;
  }

  get pending(): boolean {
    return this.#status === "running";
  }

  get pendingApprovals(): readonly Approval[] {
    return this.approvals.pending;
  }

  // biome-ignore lint/suspicious/noThenProperty: a run is awaited like a promise.
  then<A = Answer<undefined>, B = never>(
    fulfilled?: ((session: Answer<undefined>) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.synchronize().then(fulfilled, rejected);
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<Answer<undefined> | B> {
    return this.synchronize().catch(rejected);
  }

  finally(ended?: (() => void) | null): Promise<Answer<undefined>> {
    return this.synchronize().finally(ended);
  }

  listen(listener: EventListener<RunEvent>): () => void {
    return this.log.events.listen(listener);
  }

  synchronize(): Promise<Answer<undefined>> {
    // The code that ends a run first sets the result of its session.
    if (!this.pending || !isInside(this)) return this.#done;
    return Promise.reject(
      new SessionError(
        "DEADLOCK",
        `A tool of run ${this.id} waits for that run, which waits for the tool; read context.session instead.`,
      ),
    );
  }

  [Symbol.asyncIterator](): AsyncIterator<RunEvent> {
    return this.log.events[Symbol.asyncIterator]();
  }

  abort(reason?: unknown): void {
    const cause = reason === undefined ? undefined : { cause: reason };
    this.#controller.abort(new SessionError("ABORTED", `Run ${this.id} was aborted.`, cause));
  }

  /** Stops the run because another process has its session. */
  readonly lose = (error: SessionError): void => this.#controller.abort(error);

  /** The payer of the run; null if it has none. */
  get payer(): Payer | null {
    return this.#payer;
  }

  /** The spending from the budgets of its payer; null without a payer. */
  get spending(): RunSpending | null {
    if (this.#payer !== null && this.#spending === null) this.#spending = this.#openSpending(this.#payer);
    return this.#spending;
  }

  #openSpending(payer: Payer): RunSpending {
    const { runId, sessionId, state, events } = this.log;
    return new RunSpending({
      payer,
      // A run that another process recovers continues with its settled amount. A run without a lease starts at zero.
      run: this.log.hasLease ? `${sessionId}/${runId}` : uuidv7(),
      before: { totalTokens: state.usage?.totalTokens ?? 0, cost: state.cost ?? 0 },
      leaseMs: this.#leaseMs,
      onWarning: ({ warnAt: _warnAt, ...level }, exceeded) => {
        events.add({ type: "budget-warning", exceeded, ...level });
      },
    });
  }

  /** Records the start of the run. From here on, the run holds its session and receives input from others. */
  async begin(beginning: RunBeginning): Promise<void> {
    this.#payer = beginning.access.payer ?? this.#payer;
    await this.log.begin(beginning, (user) => {
      if (user !== this.#source) Session.place(this.log.output, user);
    });
    this.log.listen((message) => this.#receive(message));
    this.#admission.admit();
    this.#deadline.check();
  }

  async approve(questionOrCallId: string): Promise<void> {
    await this.approvals.settle(questionOrCallId, { approved: true });
  }

  async deny(questionOrCallId: string, reason?: string): Promise<void> {
    await this.approvals.settle(questionOrCallId, { approved: false, reason: reason ?? null });
  }

  async steer(content: Content): Promise<void> {
    await this.inputs.add("steer", content);
  }

  async followUp(content: Content): Promise<void> {
    await this.inputs.add("followUp", content);
  }

  /** Runs code that the run waits for; the code gets an error if it waits for the run in turn. See `runInside`. */
  readonly inside = <T>(work: () => T, code?: object): T => runInside(this, work, code);

  #receive(message: RunMessage): void {
    if (message.type === "queued") this.inputs.receive(message);
    else if (message.type === "approval") this.approvals.receive(message);
    else this.abort(message.reason ?? "It was cancelled.");
  }

  async #run(callersSignal: AbortSignal | undefined): Promise<Answer<undefined>> {
    const unfollow =
      callersSignal === undefined ? null : followAbort(callersSignal, () => this.abort(callersSignal.reason));
    // The caller gets the run before its first event, so it can listen from the beginning.
    await null;
    try {
      this.log.signal.throwIfAborted();
      this.#deadline.start();
      await this.#work.perform(this);
      return this.log.output as Answer<undefined>;
    } catch (error) {
      const { signal, state } = this.log;
      // A cancel was recorded just after the run had parked, and has ended it.
      if (error instanceof RunParked && state.end !== null) this.abort("It was cancelled.");
      if (error instanceof RunParked && !signal.aborted) return await this.#parked(error);
      const cause = error instanceof RunParked ? signal.reason : error;
      await this.#fail(cause);
      throw cause;
    } finally {
      await this.#spending?.end();
      unfollow?.();
    }
  }

  /** Records the end of the run; false if input was appended that the run has not answered. */
  async finish({ truncated, given }: RunEnd): Promise<boolean> {
    const { output, signal } = this.log;
    const usage = output.usage === null ? {} : { usage: output.usage };
    const value = given === null ? {} : { output: given.json };
    const outcome = { phase: "finished", ...usage, ...(truncated ? { truncated } : {}), ...value } as const;
    for (let tries = 1; ; tries++) {
      await this.log.idle();
      if (this.inputs.hasMore) return false;
      this.inputs.close();
      if (await this.log.end(outcome)) break;
      this.inputs.open();
      signal.throwIfAborted();
      if (tries === END_TRIES_MAX)
        throw new SessionBusyError(this.sessionId ?? this.id, "others, who append without a pause");
    }
    this.#close();
    if (truncated) Session.addExtras(output, [["loop.truncated", true]]);
    if (given !== null) Session.grow(output, { output: given.value });
    Session.grow(output, { result: { sessionId: this.sessionId, status: "finished", questions: [] } });
    this.#ended("finished");
    return true;
  }

  /** Releases the session. The run's messages and the placement of its tools are kept. */
  async #parked({ questions }: RunParked): Promise<Answer<undefined>> {
    const { output } = this.log;
    this.#close();
    this.log.leave();
    // From here on the run cannot be aborted: another process may hold it.
    this.#status = "parked";
    // An answer that arrived during parking is recorded first.
    await this.log.idle();
    await this.log.abandon().catch(() => {});
    if (output.sandbox === this.#source.sandbox || (await keepsFiles(output)))
      await output.closeSandbox().catch(() => {});
    Session.grow(output, { result: { sessionId: this.sessionId, status: "parked", questions } });
    this.#ended("parked");
    return output as Answer<undefined>;
  }

  async #fail(error: unknown): Promise<void> {
    const { output, signal, kept } = this.log;
    this.#close();
    const ended = new SessionError("RUN_ENDED", `Run ${this.id} has ended.`, { cause: error });
    this.log.giveUp(ended);
    this.#admission.refuse(error);
    // A run that lost its session or its store is left open as after a crash: another process continues it. The same
    // applies if its end cannot be recorded.
    const isLeft = this.#abandoned || [error, signal.reason].some(isOfStore);
    // The process that recovers the run settles its spending.
    if (isLeft && !this.#abandoned) this.#spending?.drop();
    if (signal.aborted && !isLeft) await this.#work.stopped?.().catch(() => {});
    await this.log.idle();
    const usage = output.usage === null ? {} : { usage: output.usage };
    const stopped = signal.aborted && !this.#deadline.isOver;
    const phase = stopped ? "cancelled" : "failed";
    const outcome: RunOutcome = { phase, error: errorRecord(error), ...usage };
    if (this.log.isOpen)
      await (isLeft ? this.log.abandon() : this.log.end(outcome)).catch(() => this.log.abandon()).catch(() => {});
    // No caller gets this session to close it. A workspace created by the run is left to the process that resumes the
    // run.
    if (!kept || !this.log.isOpen || output.sandbox === this.#source.sandbox)
      await output.closeSandbox().catch(() => {});
    this.#ended(stopped ? "aborted" : "failed", runErrorOf(error));
  }

  /**
   * The last event is the recorded one. A run whose end is not recorded, such as one that is abandoned, ends in this
   * process only.
   */
  #ended(status: RunStatus, error: RunError | null = null): void {
    const { events, last } = this.log;
    this.log.settleOrigin();
    this.#status = status;
    this.log.emitLast(error?.cause);
    if (error !== null && last?.type !== "run-failed") events.add({ type: "run-failed", error }, "repeated");
    events.end();
  }

  #close(): void {
    this.inputs.close();
    this.approvals.end();
    this.#deadline.stop();
  }

  async #abandon(ended: Promise<void>): Promise<void> {
    this.#abandoned = true;
    this.abort("The process is about to end.");
    await ended;
  }
}

/** Whether an error concerns only the store, not the run. */
function isOfStore(error: unknown): boolean {
  return (
    error instanceof StoreUnreachableError || error instanceof LeaseLostError || isLocked(error) || isReadOnly(error)
  );
}

/** Whether a store accepts no writes, as a database does during a failover. */
function isReadOnly(error: unknown): boolean {
  return error instanceof SessionError && error.code === "READ_ONLY";
}

/**
 * Whether an error means that another process has locked the database. If another run holds the session, the error is a `SessionBusyError`
 * instead.
 */
function isLocked(error: unknown): boolean {
  return error instanceof SessionError && error.code === "SESSION_BUSY" && !(error instanceof SessionBusyError);
}

/** Settles when a run holds its session; often nothing waits for it. */
function admission(): { readonly admitted: Promise<void>; admit(): void; refuse(error: unknown): void } {
  let admit: () => void = () => {};
  let refuse: (error: unknown) => void = () => {};
  const admitted = new Promise<void>((resolve, reject) => {
    admit = resolve;
    refuse = reject;
  });
  admitted.catch(() => {});
  return { admitted, admit, refuse };
}
