import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { abandonRun } from "../agent/active-runs.ts";
import { LEASE_MS_DEFAULT } from "../agent/persist/lease-hold.ts";
import type { RunEvent } from "../agent/run-event.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { GroupEvent } from "../group/group-event.ts";
import type { GroupRun } from "../group/group-run.ts";
import type { DueRun } from "../lifecycle/runs/due-run.ts";
import { SessionError, SessionNotFoundError } from "../session/errors.ts";
import { nextRun, requestIdOf } from "../session/log/open-runs.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkCount } from "../stores/complete/valid-arguments.ts";
import { type Beginning, type BegunRun, beginRun } from "./begin-run.ts";
import { InProcessBell } from "./in-process-bell.ts";
import { type InnerAnswer, takeAnswers } from "./inner-answers.ts";
import { LiveTeller } from "./live-teller.ts";
import { postParked } from "./post-parked.ts";
import type { Listening, RunBell } from "./run-bell.ts";
import { ringNext, runnerOf, runnerOfHost } from "./ring-session.ts";
import { openUserPlaces } from "./user-places.ts";
import { UserSlots } from "./user-slots.ts";
import { WorkerMetrics } from "./worker-metrics.ts";
import { agentsByName, checkWorker, modelsById, type WorkerInit } from "./worker-options.ts";
import { sayPresent } from "./worker-roster.ts";
import type { WorkerRun, WorkerView } from "./worker-view.ts";

const CONCURRENCY_DEFAULT = 32;
const PARK_AFTER_MS = 30_000;
const RUNS_PER_USER_DEFAULT = 10;
const SWEEP_MS_DEFAULT = 30_000;
const DRAIN_MS_DEFAULT = 10_000;
/** How long runs that were let go of may take to end. */
const ABANDON_MS = 5000;
const RUNS_SHOWN_MAX = 100;

/** How a worker is shut down. */
export interface WorkerCloseOptions {
  /** How long runs may take to come to a point where another can go on (default 10 s); then they are let go of at once. */
  readonly drainMs?: number;
}

/**
 * Runs what sessions wait for, wherever that was asked for.
 *
 * - Everything about a run is in the log; of several workers that find the same one, one has it.
 * - A worker that dies is taken over when its lease ends. One that froze and wakes appends nothing.
 * - `close` takes no more runs. Those that go on are handed over at the end of their round, or end by themselves.
 */
export interface RunWorker extends AsyncDisposable {
  /** What it is called, runs and has. */
  readonly view: WorkerView;
  /** Whether it has a run. */
  has(runId: string): boolean;
  close(options?: WorkerCloseOptions): Promise<void>;
}

/** Starts to run what sessions wait for. @throws {SessionError} `INVALID_OPTION` for a set-up that cannot work. */
export async function startWorker(init: WorkerInit): Promise<RunWorker> {
  checkWorker(init);
  const { manager, agents, groups = {}, models = [] } = init;
  const worker = new StartedWorker(init, {
    manager,
    agents: agentsByName(agents, groups),
    groups: new Map(Object.entries(groups)),
    models: modelsById(models, agents),
    placeOf: await openUserPlaces(init.place),
    unasked: init.unasked,
    park: init.park ?? { afterMs: PARK_AFTER_MS },
    leaseMs: init.leaseMs ?? LEASE_MS_DEFAULT,
  });
  await worker.start();
  return worker;
}

/** A run that this worker has. */
interface HeldRun extends WorkerRun {
  readonly run: SessionRun | GroupRun;
  /** Whether it waits for an answer to a question. */
  asks(question: string): boolean;
}

class StartedWorker implements RunWorker {
  readonly #init: WorkerInit;
  readonly #beginning: Beginning;
  readonly #bell: RunBell;
  readonly #slots: UserSlots;
  readonly #teller: LiveTeller;
  readonly #metrics = new WorkerMetrics();
  readonly #held = new Map<string, HeldRun>();
  readonly #postParked: ReturnType<typeof postParked> | null;
  readonly #name: string;
  readonly #concurrency: number;
  /** Ends what was started, in this order. */
  readonly #ends: (() => Promise<unknown>)[] = [];
  #listening: Listening | null = null;
  #closing: Promise<void> | null = null;
  #sweeping: Promise<void> | null = null;

  constructor(init: WorkerInit, beginning: Beginning) {
    this.#init = init;
    this.#beginning = beginning;
    this.#bell = init.bell;
    this.#slots = new UserSlots(init.maxRunsPerUser ?? RUNS_PER_USER_DEFAULT);
    this.#teller = new LiveTeller(init.bell);
    this.#postParked = init.webhook === undefined ? null : postParked(init.webhook, this.#report);
    this.#name = init.name ?? `${hostname()}:${process.pid}`;
    this.#concurrency = init.concurrency ?? CONCURRENCY_DEFAULT;
  }

  async start(): Promise<void> {
    const { agents, groups, leaseMs, manager } = this.#beginning;
    const { store } = manager;
    await this.#metrics.start(store, () => this.#held.size);
    const quiet = this.#bell.onError(this.#report);
    await this.#teller.start();
    const answers: Listening = await takeAnswers(this.#bell, (answer) => this.#takeAnswer(answer));
    const leave = await sayPresent(this.#bell, () => this.view);
    this.#ends.push(
      leave,
      () => answers.close(),
      () => this.#teller.close(),
      async () => quiet(),
    );
    this.#listening = await this.#bell.listen(
      [...agents.keys(), ...groups.keys(), "", runnerOfHost(hostname())],
      (sessionId, signal) => this.#answer(sessionId, signal),
      { concurrency: this.#concurrency, leaseMs },
    );
    const { sweepMs = SWEEP_MS_DEFAULT } = this.#init;
    if (sweepMs === 0) return;
    const timer = setInterval(() => this.#sweepOnce(), sweepMs).unref();
    this.#ends.unshift(async () => clearInterval(timer));
    this.#sweepOnce();
  }

  get view(): WorkerView {
    const runs = [...this.#held.values()].slice(0, RUNS_SHOWN_MAX).map(({ run: _run, asks: _asks, ...shown }) => shown);
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

  get #ring() {
    const { manager, leaseMs } = this.#beginning;
    return { store: manager.store, bell: this.#bell, leaseMs };
  }

  async #close(drainMs: number): Promise<void> {
    const closed = this.#listening?.close();
    const late = setTimeout(() => {
      for (const { run } of this.#held.values()) void abandonRun(run.id);
    }, drainMs);
    const over = pause(drainMs + ABANDON_MS, undefined, { ref: false });
    await Promise.race([closed, over]);
    clearTimeout(late);
    await this.#sweeping;
    // Another has room for them, perhaps.
    await Promise.all(this.#slots.takeWaiting().map((sessionId) => ringNext(this.#ring, sessionId))).catch(
      this.#report,
    );
    for (const end of this.#ends) await end().catch(this.#report);
    this.#metrics.stop();
  }

  /** Does what a session waits for; resolves when that is over. */
  async #answer(sessionId: string, signal: AbortSignal): Promise<void> {
    try {
      const due = await this.#beginning.manager.due(sessionId);
      if (due === null) return await ringNext(this.#ring, sessionId, { now: false });
      const runner = await runnerOf(this.#beginning.manager.store, due.head, due.run);
      if (!this.#offers(runner)) return await this.#bell.ring(sessionId, { runner });
      await this.#work(due, runner, signal);
    } catch (error) {
      // Another worker may have the model; the session may be gone.
      if (!isMissing(error)) this.#report(error);
    }
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
      const begun = await beginRun(this.#beginning, due);
      if (begun !== null) {
        this.#measure(due);
        await this.#hold(begun, { sessionId, userId, runner, runId: run.runId }, signal);
      }
      await ringNext(this.#ring, sessionId, { now: begun !== null });
    } finally {
      const next = this.#slots.leave(user);
      if (next !== null) await ringNext(this.#ring, next).catch(this.#report);
    }
  }

  #measure({ run, request }: DueRun): void {
    if (run.state === "started") this.#metrics.tookOver();
    if (run.state !== "requested" || request === null) return;
    const asked = Date.parse(request.timestamp);
    this.#metrics.began(Math.max(0, Date.now() - Math.max(asked, Date.parse(request.notBefore ?? "") || 0)));
  }

  async #hold(begun: BegunRun, about: Omit<WorkerRun, "since">, signal: AbortSignal): Promise<void> {
    const { run, done } = begun;
    const questions = new Set<string>();
    const held = { ...about, since: new Date().toISOString(), run, asks: (asked: string) => questions.has(asked) };
    this.#held.set(about.runId, held);
    const quiet = this.#teller.tell(about, run);
    // With nobody else to go on, a run may as well end here.
    const handsOver = !(this.#bell instanceof InProcessBell);
    run.listen((event: RunEvent | GroupEvent) => {
      if (event.type === "approval-required") questions.add(event.approval.question);
      if (event.type === "run-parked") this.#tellParked(held, event.questions);
      if (handsOver && signal.aborted && endsRound(event)) void abandonRun(run.id);
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

  #tellParked(
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

  async #takeAnswer({ sessionId, question, approve, reason }: InnerAnswer): Promise<string | null | undefined> {
    const held = [...this.#held.values()].find((one) => one.sessionId === sessionId);
    if (held === undefined || !held.asks(question)) return held && null;
    await (approve ? held.run.approve(question) : held.run.deny(question, reason));
    return held.runId;
  }

  #sweepOnce(): void {
    this.#sweeping ??= this.#sweep()
      .catch(this.#report)
      .finally(() => {
        this.#sweeping = null;
      });
  }

  /** Rings for runs that nobody has; those that wait for an answer cost nothing. */
  async #sweep(): Promise<void> {
    const { store } = this.#beginning.manager;
    /** How many were rung for, by user: of those with many, others go first. */
    const rung = new Map<string | null, number>();
    for (const query of [{ runs: "interrupted" }, { dueBefore: new Date().toISOString() }] as const) {
      for (let cursor: string | null | undefined; cursor !== null && this.#closing === null; ) {
        const page = await store.list({ ...query, ...(cursor === undefined ? {} : { cursor }) });
        for (const head of page.items) await this.#ringFor(head, rung);
        cursor = page.next;
      }
    }
  }

  async #ringFor(head: SessionHead, rung: Map<string | null, number>): Promise<void> {
    const { store } = this.#beginning.manager;
    const { id, userId } = head.header;
    const run =
      nextRun(head.openRuns, new Date().toISOString()) ?? head.openRuns.find(({ state }) => state === "parked");
    if (run === undefined) return;
    // What nobody asked for is another program's, which may want to go on with it by itself.
    if (run.state === "started" && (await store.getEntry(id, requestIdOf(run.runId))) === null) return;
    const priority = (rung.get(userId) ?? 0) + 1;
    rung.set(userId, priority);
    await this.#bell.ring(id, { runner: await runnerOf(store, head, run), priority });
  }

  readonly #report = (error: unknown): void => {
    if (this.#init.onError !== undefined) this.#init.onError(error);
    else process.emitWarning(error instanceof Error ? error : String(error));
  };
}

/** Whether another can go on from here without asking anything again. */
function endsRound(event: RunEvent | GroupEvent): boolean {
  if (event.type === "agent-finished") return true;
  return event.type === "round-finished" && !("agent" in event) && (event.message.toolCalls ?? []).length > 0;
}

/** Whether another worker may have what a run needs, or its session is gone. */
function isMissing(error: unknown): boolean {
  const missing = error instanceof SessionError && ["AGENT_NOT_FOUND", "MODEL_NOT_FOUND"].includes(error.code);
  return missing || error instanceof SessionNotFoundError;
}
