import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { prepareModels } from "../agent/agent.ts";
import { abandonRun, parkRunEarly } from "../agent/active-runs.ts";
import { LEASE_MS_DEFAULT } from "../agent/persist/lease-hold.ts";
import { errorRecord } from "../agent/run-error.ts";
import type { RunEvent } from "../agent/run-event.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { GroupEvent } from "../group/group-event.ts";
import type { GroupRun } from "../group/group-run.ts";
import type { DueRun } from "../lifecycle/runs/due-run.ts";
import { SessionError, SessionNotFoundError, StoreUnreachableError, show } from "../session/errors.ts";
import { blockedIdOf, type OpenRun, requestIdOf } from "../session/log/open-runs.ts";
import { hasBegun, nextRun } from "../session/log/run-fold.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { Transcript } from "../session/value/transcript.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import { type Beginning, type BegunRun, beginRun } from "./begin-run.ts";
import { InProcessQueue } from "./in-process-queue.ts";
import { LivePublisher } from "./live-publisher.ts";
import { postParked } from "./post-parked.ts";
import type { QueueListening, RunQueue } from "./run-queue.ts";
import { notifyNext, runnerOf, runnerOfDue, runnerOfHost } from "./notify-session.ts";
import { StoreWatch } from "./store-watch.ts";
import { ownDirectoryOf, openUserPlaces } from "./user-places.ts";
import { UserStorage } from "./user-storage.ts";
import { UserSlots } from "./user-slots.ts";
import { WorkerMetrics } from "./worker-metrics.ts";
import { agentsByName, checkWorker, modelsById, type WorkerInit } from "./worker-options.ts";
import { REPLY_MS, announceWorker, WorkerRoster } from "./worker-roster.ts";
import type { WorkerRun, WorkerView } from "./worker-view.ts";

const CONCURRENCY_DEFAULT = 32;
const PARK_AFTER_MS = 30_000;
const RUNS_PER_USER_DEFAULT = 10;
/** The shortest delay before checking again whether a user may have one more run; the longest is twice this. */
const WAIT_MS = 500;
const SWEEP_MS_DEFAULT = 30_000;
const DRAIN_MS_DEFAULT = 10_000;
/** How long abandoned runs may take to end. */
const ABANDON_MS = 5000;
const RUNS_SHOWN_MAX = 100;
/** The delay of a new notification after the store failed although it responds. */
const AGAIN_MS = 1000;

/** Options for closing a worker. */
export interface WorkerCloseOptions {
  /**
   * How long runs may take to reach a point where another worker can continue (default 10 s); then they are abandoned.
   */
  readonly drainMs?: number;
}

/**
 * Executes the runs that sessions wait for, whichever process requested them.
 *
 * - The state of a run is in the log; if several workers find the same run, only one gets it.
 * - The runs of a worker that dies are taken over when its leases end. A worker that froze and resumes appends nothing.
 * - After `close`, it accepts no more runs. Runs in progress are handed over at the end of their round, or finish.
 */
export interface RunWorker extends AsyncDisposable {
  /** The worker's name, agents and runs. */
  readonly view: WorkerView;
  /** Whether the worker has this run. */
  has(runId: string): boolean;
  close(options?: WorkerCloseOptions): Promise<void>;
}

/** Starts a worker. @throws {SessionError} `INVALID_OPTION` for invalid options. */
export async function startWorker(init: WorkerInit): Promise<RunWorker> {
  return startWorkerOn(init, null);
}

/** As `startWorker`, with a shared counter of stored bytes; null if the worker counts them itself. */
export async function startWorkerOn(init: WorkerInit, storage: UserStorage | null): Promise<RunWorker> {
  checkWorker(init);
  const { manager, agents, groups = {}, models = [], storedBytesPerUser = null } = init;
  await prepareModels(agents);
  const placeOf = await openUserPlaces(init.place);
  const limits = { sessions: null, bytes: storedBytesPerUser };
  const directoryOf = (userId: string): string | null => ownDirectoryOf(placeOf(userId), userId);
  const counted = storage ?? new UserStorage({ store: manager.store, limits, directoryOf });
  const worker = new StartedWorker(
    init,
    {
      manager,
      agents: agentsByName(agents, groups),
      groups: new Map(Object.entries(groups)),
      models: modelsById(models, agents),
      placeOf,
      ask: init.ask,
      park: init.park ?? { afterMs: PARK_AFTER_MS },
      leaseMs: init.leaseMs ?? LEASE_MS_DEFAULT,
    },
    counted,
  );
  await worker.start();
  return worker;
}

/** A run that this worker executes. */
interface HeldRun extends WorkerRun {
  readonly run: SessionRun | GroupRun;
}

class StartedWorker implements RunWorker {
  readonly #init: WorkerInit;
  readonly #beginning: Beginning;
  readonly #queue: RunQueue;
  readonly #slots: UserSlots;
  readonly #runsPerUser: number;
  readonly #storage: UserStorage;
  readonly #publisher: LivePublisher;
  readonly #roster: WorkerRoster;
  readonly #metrics = new WorkerMetrics();
  readonly #held = new Map<string, HeldRun>();
  readonly #postParked: ReturnType<typeof postParked> | null;
  readonly #name: string;
  readonly #concurrency: number;
  /** Functions that stop what was started. */
  readonly #ends: (() => Promise<unknown>)[] = [];
  readonly #watch: StoreWatch;
  #listening: QueueListening | null = null;
  #closing: Promise<void> | null = null;
  #sweeping: Promise<void> | null = null;

  constructor(init: WorkerInit, beginning: Beginning, storage: UserStorage) {
    this.#storage = storage;
    this.#init = init;
    this.#beginning = beginning;
    this.#queue = init.queue;
    this.#runsPerUser = init.maxRunsPerUser ?? RUNS_PER_USER_DEFAULT;
    this.#slots = new UserSlots(this.#runsPerUser);
    this.#publisher = new LivePublisher(init.queue);
    this.#roster = new WorkerRoster(init.queue);
    this.#postParked = init.webhook === undefined ? null : postParked(init.webhook, this.#report);
    this.#name = init.name ?? `${hostname()}:${process.pid}`;
    this.#concurrency = init.concurrency ?? CONCURRENCY_DEFAULT;
    this.#watch = new StoreWatch(beginning.manager.store, beginning.leaseMs, {
      lost: () => this.#listening?.pause(),
      back: () => {
        this.#listening?.resume();
        this.#sweepOnce();
      },
    });
  }

  async start(): Promise<void> {
    const { agents, groups, leaseMs, manager } = this.#beginning;
    const { store } = manager;
    await this.#metrics.start(store, () => this.#held.size);
    const quiet = this.#queue.onError(this.#report);
    await this.#publisher.start();
    await this.#roster.start();
    const leave = await announceWorker(this.#queue, () => this.view);
    this.#ends.push(
      leave,
      () => this.#publisher.close(),
      () => this.#roster.close(),
      async () => quiet(),
    );
    this.#listening = await this.#queue.listen(
      [...agents.keys(), ...groups.keys(), "", runnerOfHost(hostname())],
      (sessionId, signal, forRunner) => this.#answer(sessionId, signal, forRunner),
      { concurrency: this.#concurrency, leaseMs },
    );
    this.#watch.start();
    this.#ends.unshift(async () => this.#watch.close());
    const { sweepMs = SWEEP_MS_DEFAULT } = this.#init;
    if (sweepMs === 0) return;
    const timer = setInterval(() => this.#sweepOnce(), sweepMs).unref();
    this.#ends.unshift(async () => clearInterval(timer));
    this.#sweepOnce();
  }

  get view(): WorkerView {
    const runs = [...this.#held.values()].slice(0, RUNS_SHOWN_MAX).map(({ run: _run, ...shown }) => shown);
    const [name, concurrency, { agents, groups }] = [this.#name, this.#concurrency, this.#beginning];
    const offers = { agents: [...agents.keys()], groups: [...groups.keys()] };
    return { name, host: hostname(), ...offers, concurrency, active: this.#held.size, runs };
  }

  has(runId: string): boolean {
    return this.#held.has(runId);
  }

  close({ drainMs = DRAIN_MS_DEFAULT }: WorkerCloseOptions = {}): Promise<void> {
    checkCount(drainMs, "drainMs", 0, 2 ** 31 - 1);
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #notifier() {
    const { manager, leaseMs } = this.#beginning;
    return { store: manager.store, queue: this.#queue, leaseMs };
  }

  async #close(drainMs: number): Promise<void> {
    const closed = this.#listening?.close();
    // Their answers can come through any process, so this one need not wait for them.
    for (const { run } of this.#held.values()) parkRunEarly(run.id);
    const late = setTimeout(() => {
      for (const { run } of this.#held.values()) void abandonRun(run.id);
    }, drainMs);
    const over = pause(drainMs + ABANDON_MS, undefined, { ref: false });
    await Promise.race([closed, over]);
    clearTimeout(late);
    const rest = async (): Promise<void> => {
      await this.#sweeping;
      // Another worker may have free capacity for them.
      await Promise.all(this.#slots.takeWaiting().map((sessionId) => notifyNext(this.#notifier, sessionId)));
    };
    await this.#watch.whileThere(rest()).catch(this.#report);
    // An unreachable queue is not waited for.
    const ended = Promise.all(this.#ends.map((end) => end().catch(this.#report)));
    await Promise.race([ended, pause(ABANDON_MS, undefined, { ref: false })]);
    this.#metrics.stop();
  }

  /**
   * Executes the due runs of a session; resolves when they are over, or when the store becomes unreachable: then other
   * workers continue.
   */
  async #answer(sessionId: string, signal: AbortSignal, runner: string): Promise<void> {
    const answered = await this.#watch.whileThere(this.#answerHere(sessionId, signal));
    if (answered === "done") return;
    const away = answered === "away" || !(await this.#watch.check());
    const at = away ? {} : { at: new Date(Date.now() + AGAIN_MS) };
    await this.#queue.notify(sessionId, { runner, ...at }).catch(this.#report);
  }

  async #answerHere(sessionId: string, signal: AbortSignal): Promise<"done" | "lost"> {
    try {
      await this.#answerNow(sessionId, signal);
      return "done";
    } catch (error) {
      // Another worker may have the model; the session may have been deleted.
      if (!isMissing(error)) this.#report(error);
      return error instanceof StoreUnreachableError ? "lost" : "done";
    }
  }

  async #answerNow(sessionId: string, signal: AbortSignal): Promise<void> {
    const due = await this.#beginning.manager.due(sessionId);
    if (due === null) return await notifyNext(this.#notifier, sessionId, { now: false });
    const runner = await runnerOfDue(this.#beginning.manager.store, due);
    if (!this.#offers(runner)) return await this.#queue.notify(sessionId, { runner });
    await this.#work(due, runner, signal);
  }

  #offers(runner: string): boolean {
    const { agents, groups } = this.#beginning;
    return runner === "" || runner === runnerOfHost(hostname()) || agents.has(runner) || groups.has(runner);
  }

  async #work(due: DueRun, runner: string, signal: AbortSignal): Promise<void> {
    const { head, request, run } = due;
    const { id: sessionId, userId } = head.header;
    const user = request?.by ?? userId ?? "";
    if (!this.#slots.take(user, sessionId)) return;
    try {
      if ((await this.#runningOf(userId)) >= this.#runsPerUser) return await this.#notifyLater(sessionId, runner);
      const begun = (await this.#checkRoom(due)) ? await this.#begin(due) : null;
      if (begun !== null) {
        this.#measure(due);
        await this.#hold(begun, { sessionId, userId, runner, runId: run.runId }, signal);
      }
      await notifyNext(this.#notifier, sessionId, { now: begun !== null });
    } finally {
      const next = this.#slots.leave(user);
      if (next !== null) await notifyNext(this.#notifier, next).catch(this.#report);
    }
  }

  async #begin(due: DueRun): Promise<BegunRun | null> {
    try {
      // Other workers may have started runs in the meantime. Each counts its own run before it continues, so the limit
      // is never exceeded.
      const { userId } = due.head.header;
      return await beginRun(this.#beginning, due, async () => (await this.#runningOf(userId)) <= this.#runsPerUser);
    } catch (error) {
      await this.#block(due, error);
      throw error;
    }
  }

  /** The number of sessions of a user with a running run, on all machines. */
  async #runningOf(userId: string | null): Promise<number> {
    const { store } = this.#beginning.manager;
    if (userId === null || store.capabilities.lease !== "shared") return 0;
    return store.count({ userId, runs: "running" });
  }

  /** With a random delay, so that waiters for the same slot do not collide again. */
  #notifyLater(sessionId: string, runner: string): Promise<void> {
    const at = new Date(Date.now() + WAIT_MS * (1 + Math.random()));
    return this.#queue.notify(sessionId, { runner, at });
  }

  /** Records why a run could not be started, once for each reason, for the user who requested it. */
  async #block({ head, run }: Pick<DueRun, "head" | "run">, error: unknown): Promise<void> {
    const { code, message } = blockOf(error, this.#name);
    if (PASSING.has(code) || run.blocked === code) return;
    const { runId } = run;
    const id = blockedIdOf(runId, code);
    // A run that has ended by now needs no record; if this fails, the next attempt records it.
    await this.#beginning.manager.store
      .append(head.header.id, [{ type: "run_blocked", id, runId, code, message }], { guard: { openRun: runId } })
      .catch((failure: unknown) => {
        if (!(failure instanceof SessionError)) this.#report(failure);
      });
  }

  /** Whether the user has storage left. If not, a run that has not started ends with an error that says so. */
  async #checkRoom({ head, run }: DueRun): Promise<boolean> {
    const { id, userId } = head.header;
    if (userId === null || hasBegun(run)) return true;
    try {
      await this.#storage.checkRun(userId, id);
      return true;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "BYTES_QUOTA_EXCEEDED") throw error;
      const failed = { type: "run", runId: run.runId, phase: "failed", error: errorRecord(error) } as const;
      await this.#beginning.manager.store.append(id, [failed], { expectedVersion: head.version });
      return false;
    }
  }

  /** Stops a run between two rounds if its user has no storage left. */
  async #stopWithoutRoom({
    sessionId,
    userId,
    runId,
  }: Pick<WorkerRun, "sessionId" | "userId" | "runId">): Promise<void> {
    if (userId === null) return;
    try {
      await this.#storage.checkRun(userId, sessionId);
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "BYTES_QUOTA_EXCEEDED") throw error;
      await this.#beginning.manager.cancel(sessionId, { runId, reason: error.message });
    }
  }

  #measure({ run, request }: DueRun): void {
    if (run.state === "started") this.#metrics.tookOver();
    if (hasBegun(run) || request === null) return;
    const asked = Date.parse(request.timestamp);
    this.#metrics.began(Math.max(0, Date.now() - Math.max(asked, Date.parse(request.notBefore ?? "") || 0)));
  }

  async #hold(begun: BegunRun, about: Omit<WorkerRun, "since">, signal: AbortSignal): Promise<void> {
    const { run, done } = begun;
    const held = { ...about, since: new Date().toISOString(), run };
    this.#held.set(about.runId, held);
    if (this.#closing !== null) parkRunEarly(run.id);
    const quiet = this.#publisher.publish(about, run);
    // Without another worker, a run may as well end here.
    const handsOver = !(this.#queue instanceof InProcessQueue);
    run.listen((event: RunEvent | GroupEvent) => {
      if (event.type === "run-parked") this.#reportParked(held, event.questions);
      const isOver = endsRound(event, run);
      if (isOver) void this.#stopWithoutRoom(about).catch(this.#report);
      // A round without calls has no result; the next one has not asked its model yet.
      if ((isOver || event.type === "round-started") && handsOver && signal.aborted) void abandonRun(run.id);
    });
    try {
      await done;
    } catch (error) {
      if (!(error instanceof SessionError)) this.#report(error);
    } finally {
      this.#held.delete(about.runId);
      quiet();
    }
  }

  #reportParked(
    { sessionId, userId, runId }: WorkerRun,
    questions: Extract<RunEvent, { type: "run-parked" }>["questions"],
  ): void {
    try {
      const parked = { sessionId, userId, runId, questions };
      this.#postParked?.(parked);
      this.#init.onParked?.(parked);
    } catch (error) {
      this.#report(error);
    }
  }

  #sweepOnce(): void {
    this.#sweeping ??= this.#sweep()
      .catch(this.#report)
      .finally(() => {
        this.#sweeping = null;
      });
  }

  /** Notifies the queue about runs that no process holds; runs that wait for an answer cost nothing. */
  async #sweep(): Promise<void> {
    const { store } = this.#beginning.manager;
    /** The number of notifications by user; users with many are served after others. */
    const notified = new Map<string | null, number>();
    for (const query of [{ runs: "interrupted" }, { dueBefore: new Date().toISOString() }] as const) {
      for (let cursor: string | null | undefined; cursor !== null && this.#closing === null; ) {
        const page = await store.list({ ...query, ...(cursor === undefined ? {} : { cursor }) });
        for (const head of page.items) await this.#notifyFor(head, notified);
        cursor = page.next;
      }
    }
  }

  async #notifyFor(head: SessionHead, notified: Map<string | null, number>): Promise<void> {
    const { store } = this.#beginning.manager;
    const { id, userId } = head.header;
    const run =
      nextRun(head.openRuns, new Date().toISOString()) ?? head.openRuns.find(({ state }) => state === "parked");
    if (run === undefined) return;
    // A run without a request belongs to the program that started it; leave it alone.
    if (run.state === "started" && (await store.getEntry(id, requestIdOf(run.runId))) === null) return;
    const priority = (notified.get(userId) ?? 0) + 1;
    notified.set(userId, priority);
    const runner = await runnerOf(store, head, run);
    await this.#queue.notify(id, { runner, priority });
    if (!this.#offers(runner) && run.state !== "parked" && run.blocked === undefined)
      this.#lookForRunner(head, run, runner);
  }

  /** Records that no worker has the runner of a run, once the workers had time to announce themselves. */
  #lookForRunner(head: SessionHead, run: OpenRun, runner: string): void {
    this.#roster.ask();
    const look = (): void => {
      if (this.#closing !== null) return;
      // A timer may fire a fraction of a millisecond early, and the next sweep is far away.
      const leftMs = this.#roster.replyMsLeft;
      if (leftMs > 0) lookIn(leftMs);
      if (leftMs > 0 || !this.#roster.lacks(runner)) return;
      const text = `No worker has ${show(runner)}, which run ${show(run.runId)} is for; start one that has it, or cancel the run.`;
      void this.#block({ head, run }, new SessionError("AGENT_NOT_FOUND", text));
    };
    const lookIn = (ms: number): void => {
      setTimeout(look, ms).unref();
    };
    lookIn(REPLY_MS);
  }

  readonly #report = (error: unknown): void => {
    if (this.#init.onError !== undefined) this.#init.onError(error);
    else process.emitWarning(error instanceof Error ? error : String(error));
  };
}

const MESSAGE_CHARACTERS_MAX = 1000;

/** Errors that are temporary, or recorded elsewhere. */
const PASSING: ReadonlySet<string> = new Set([
  ...["SESSION_NOT_FOUND", "SESSION_BUSY", "CONFLICT", "RUN_ENDED", "LEASE_LOST", "ABORTED"],
  ...["STORE_FAILED", "STORE_CLOSED", "SESSION_CLOSED", "SESSION_EXPIRED", "SESSION_SUSPENDED"],
]);

/** Why a run could not be started. Messages of foreign errors may contain secrets and are left out. */
function blockOf(error: unknown, worker: string): { readonly code: string; readonly message: string } {
  if (!(error instanceof SessionError))
    return { code: "INTERNAL", message: "A worker failed to begin the run; the log of that worker says why." };
  const message = error.code === "TOOL_NOT_FOUND" ? `Worker ${show(worker)}: ${error.message}` : error.message;
  return { code: error.code, message: message.slice(0, MESSAGE_CHARACTERS_MAX) };
}

/**
 * Whether another worker can continue after an event without repeating work: the last result of a round, or the turn of a
 * group's agent, is recorded. The run may have been recovered in the middle of a round.
 */
function endsRound(event: RunEvent | GroupEvent, run: SessionRun | GroupRun): boolean {
  if (event.type === "agent-finished") return true;
  return event.type === "tool-finished" && "transcript" in run && lacksNoResult(run.transcript);
}

/** Whether the calls of the last answer have as many results. Calls may share an id. */
function lacksNoResult(transcript: Transcript): boolean {
  let results = 0;
  for (let index = transcript.length - 1; index >= 0; index--) {
    const message = transcript.at(index)?.message;
    if (message?.role === "tool") results += 1;
    if (message?.role === "assistant") return results >= (message.toolCalls?.length ?? 0);
  }
  return false;
}

/**
 * Whether the error means that this worker lacks an agent or a model that others may have, or that the session was
 * deleted.
 */
function isMissing(error: unknown): boolean {
  const missing =
    error instanceof SessionError && ["AGENT_NOT_FOUND", "MODEL_NOT_FOUND", "TOOL_NOT_FOUND"].includes(error.code);
  return missing || error instanceof SessionNotFoundError;
}
