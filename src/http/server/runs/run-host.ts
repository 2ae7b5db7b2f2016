import { drainRuns } from "../../../agent/active-runs.ts";
import type { Agent } from "../../../agent/agent.ts";
import type { SessionRun } from "../../../agent/session-run.ts";
import type { GroupRun } from "../../../group/group-run.ts";
import type { DueRun } from "../../../lifecycle/runs/due-run.ts";
import { SessionCapacityError, SessionError, show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/fold.ts";
import type { Session } from "../../../session/session.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { HttpError } from "../http-error.ts";
import type { ServerRuns, ServerServices } from "../server-services.ts";
import { LiveEvents } from "./live-events.ts";
import { type RunOrigin, readRunOrigin } from "./run-origin.ts";
import { RunSlots } from "./run-slots.ts";

const RUNNING_MAX = 1000;

/** A run that this process has. */
export interface HeldRun {
  readonly runId: string;
  readonly sessionId: string;
  readonly run: SessionRun | GroupRun;
  /** Whether it waits for an answer to a question. */
  asks(question: string): boolean;
  /** Resolves when it has ended, or has let go of its session; never rejects. */
  readonly ended: Promise<void>;
}

/**
 * Takes up the runs that are due in this process, and knows those that it has. Everything else about a run is in the log.
 *
 * - A run goes on whether or not anyone reads its events.
 * - Of several that take up the same run, one has it; to the others there is nothing to do.
 * - What finds no place here stays in the log, and is looked at again when one is free.
 */
export class RunHost implements ServerRuns {
  /** What the runs here tell beside what lasts. */
  readonly live: LiveEvents = new LiveEvents();
  readonly #services: ServerServices;
  readonly #slots: RunSlots;
  readonly #runs = new Map<string, HeldRun>();
  /** What is being looked at, by session: one look at a time. */
  readonly #looks = new Map<string, Promise<unknown>>();
  #sweeping: Promise<void> | null = null;

  constructor(services: ServerServices, maxRunsPerUser: number) {
    const { recoverMs } = services;
    this.#services = services;
    this.#slots = new RunSlots(maxRunsPerUser);
    if (recoverMs === 0) return;
    const look = (): void => {
      this.#sweeping ??= this.#sweep()
        .catch(services.report)
        .finally(() => {
          this.#sweeping = null;
        });
    };
    const timer = setInterval(look, recoverMs).unref();
    services.drain.addEventListener("abort", () => clearInterval(timer), { once: true });
    look();
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  get(runId: string): HeldRun | null {
    return this.#runs.get(runId) ?? null;
  }

  /** The run that has a session in this process. */
  inSession(sessionId: string): HeldRun | null {
    return [...this.#runs.values()].find((held) => held.sessionId === sessionId) ?? null;
  }

  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.all([...this.#runs.values()].map(({ ended }) => ended));
  }

  abortAll(): void {
    const ids = [...this.#runs.values()].map(({ run }) => run.id);
    void drainRuns({ timeoutMs: 0, ids }).catch(this.#services.report);
  }

  /** @throws {HttpError} `TOO_MANY_RUNS` or {SessionCapacityError} where a run of the user could not begin here now. */
  checkRoom(userId: string): void {
    if (this.#runs.size >= RUNNING_MAX) throw new SessionCapacityError("runs", RUNNING_MAX);
    this.#slots.check(userId);
  }

  /** Takes up what is due in a session, if nobody has it; resolves when that has its session, and reports why not. */
  async ring(sessionId: string): Promise<void> {
    try {
      await this.takeUp(sessionId);
    } catch (error) {
      // Another server may have the agent, the model or the group; here it is looked for again in a while.
      if (!isMissing(error)) this.#services.report(error);
    }
  }

  /**
   * The same, with the run that was taken up, or null. With `any`, also one that nobody asked for through a server: another
   * program's, which may want to go on with it by itself.
   */
  async takeUp(sessionId: string, { any = false }: { readonly any?: boolean } = {}): Promise<HeldRun | null> {
    const { manager, drain } = this.#services;
    const before = this.#looks.get(sessionId);
    const look = (async () => {
      await before?.catch(() => {});
      if (drain.aborted || this.#runs.size >= RUNNING_MAX) return null;
      const due = await manager.due(sessionId);
      return due === null || (due.request === null && !any) ? null : this.#begin(due);
    })();
    this.#looks.set(sessionId, look);
    try {
      return await look;
    } finally {
      if (this.#looks.get(sessionId) === look) this.#looks.delete(sessionId);
    }
  }

  async #begin(due: DueRun): Promise<HeldRun | null> {
    const { head, request, run } = due;
    const userId = request?.by ?? head.header.userId ?? "";
    if (!this.#slots.take(userId, head.header.id)) return null;
    let held: HeldRun | null = null;
    try {
      const origin = request === null ? await readRunOrigin(this.#services.store, head) : null;
      const group = request?.group ?? origin?.group ?? null;
      held = group === null ? await this.#beginAgent(head, origin) : await this.#beginGroup(head, run.runId, group);
      return held;
    } finally {
      if (held === null) this.#leave(userId);
      else void held.ended.then(() => this.#leave(userId)).then(() => this.ring(head.header.id));
    }
  }

  async #beginAgent(head: SessionHead, origin: RunOrigin | null): Promise<HeldRun | null> {
    const { manager, agents, models, unasked, park } = this.#services;
    const { id: sessionId } = head.header;
    let input: Session | null = null;
    const found = await manager.recover(sessionId, (name) => agentOf(agents, name, origin), {
      models,
      park,
      ...(unasked && { unasked }),
      place: (session) => {
        input = this.#placed(session, head);
        return input;
      },
    });
    if (found === null) return null;
    const { run } = found;
    const done = run.synchronize().then(async (output) => {
      // What a parked run has is left to whoever goes on with it, as after a failure; nobody else gets the rest.
      if (run.status === "parked") return this.#tellParked(run, head);
      await Promise.allSettled([output.closeSandbox(), input?.closeSandbox()]);
    });
    return this.#hold(sessionId, run.runId, run, done, LASTING);
  }

  async #beginGroup({ header }: SessionHead, runId: string, name: string): Promise<HeldRun | null> {
    const { groups, unasked } = this.#services;
    const [only, ...others] = groups.values();
    const group = groups.get(name) ?? (name === "" && others.length === 0 ? only : undefined);
    if (group === undefined) throw new HttpError("GROUP_NOT_FOUND", `The server has no group ${show(name)}.`);
    const run = group.stream(header.id, null, { runId, turns: false, ...(unasked && { unasked }) });
    const done = Promise.resolve(run).then(() => {});
    const admitted = new Promise<void>((resolve) => {
      run.listen(({ type }) => type === "group-started" && resolve());
    });
    try {
      await Promise.race([admitted, done]);
    } catch (error) {
      const late = error instanceof SessionError && ["SESSION_BUSY", "CONFLICT", "RUN_ENDED"].includes(error.code);
      if (late) return null;
      throw error;
    }
    return this.#hold(header.id, runId, run, done, LASTING_OF_GROUPS);
  }

  #hold(
    sessionId: string,
    runId: string,
    run: SessionRun | GroupRun,
    done: Promise<void>,
    lasting: ReadonlySet<string>,
  ): HeldRun {
    const ended = done
      .catch((error: unknown) => {
        if (!(error instanceof SessionError)) this.#services.report(error);
      })
      .then(() => {
        this.#runs.delete(runId);
        this.live.end(runId);
      });
    const questions = new Set<string>();
    run.listen((event: WireRunEvent, position: number) => {
      if (event.type === "approval-required") questions.add(event.approval.question);
      if (!lasting.has(event.type) || isInner(event)) this.live.tell(event, position);
    });
    const held = { runId, sessionId, run, ended, asks: (question: string) => questions.has(question) };
    this.#runs.set(runId, held);
    return held;
  }

  #leave(userId: string): void {
    const next = this.#slots.leave(userId);
    if (next !== null) void this.ring(next);
  }

  #tellParked(run: SessionRun, { header }: SessionHead): void {
    const { id: sessionId, userId } = header;
    const stop = run.listen((event) => {
      if (event.type !== "run-parked") return;
      this.#services.onParked({ sessionId, userId, runId: run.runId, questions: event.questions });
    });
    stop();
  }

  /** Looks for runs that nobody has; those that wait for an answer cost nothing. */
  async #sweep(): Promise<void> {
    for (const query of [{ dueBefore: new Date().toISOString() }, { runs: "interrupted" }] as const) {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await this.#services.store.list({ ...query, ...(cursor === undefined ? {} : { cursor }) });
        for (const { header } of page.items) await this.ring(header.id);
        cursor = this.#services.drain.aborted ? null : page.next;
      }
    }
  }

  /** What a run begins with, aimed at the place of the session's user where the session has none. */
  #placed(input: Session, { header }: SessionHead): Session {
    const place = this.#services.placeOf(header.userId);
    if (place === null || header.sandbox !== null || input.sandboxBackend !== null) return input;
    return input.to(place.backend, place.spec);
  }
}

/** What the log tells of an agent's run, and of a group's: those who follow a run have it from there. */
const LASTING: ReadonlySet<string> = new Set<WireRunEvent["type"]>([
  "run-started",
  "round-finished",
  "tool-finished",
  "approval-required",
  "compaction",
  "run-parked",
  "run-finished",
  "run-failed",
]);
const LASTING_OF_GROUPS: ReadonlySet<string> = new Set<WireRunEvent["type"]>([
  "group-started",
  "agent-finished",
  "agent-failed",
  "approval-required",
  "group-finished",
  "group-failed",
]);

/** Whether a run inside of a tool asks, which the log of the run around it does not say. */
function isInner(event: WireRunEvent): boolean {
  return event.type === "approval-required" && event.approval.innerRunId !== undefined;
}

/** The agent of that name; the first where none was named. An old log may name one that is gone, or none. */
function agentOf(agents: ReadonlyMap<string, Agent>, name: string | null, origin: RunOrigin | null): Agent | null {
  const [first = null] = agents.values();
  const known = agents.get(name ?? origin?.agent ?? "");
  return known ?? (name === null ? first : null);
}

/** Whether another server may have what a run needs, or its session is gone. */
function isMissing(error: unknown): boolean {
  const code = error instanceof SessionError || error instanceof HttpError ? error.code : "";
  return ["AGENT_NOT_FOUND", "MODEL_NOT_FOUND", "GROUP_NOT_FOUND", "SESSION_NOT_FOUND"].includes(code);
}
