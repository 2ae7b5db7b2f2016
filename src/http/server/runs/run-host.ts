import { drainRuns } from "../../../agent/active-runs.ts";
import type { Agent } from "../../../agent/agent.ts";
import type { SessionRun } from "../../../agent/session-run.ts";
import type { GroupRun } from "../../../group/group-run.ts";
import type { EntryOf } from "../../../session/entry.ts";
import { SessionCapacityError, SessionError } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/fold.ts";
import { nextRun, type OpenRun, requestIdOf } from "../../../session/open-runs.ts";
import type { Session } from "../../../session/session.ts";
import type { WireRunEvent } from "../../wire.ts";
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

/** A run that nobody has and that is due. */
interface DueRun {
  readonly head: SessionHead;
  readonly open: OpenRun;
  readonly request: EntryOf<"run_request"> | null;
  /** Of a run without a request: whom the log says was asked. */
  readonly origin: RunOrigin | null;
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

  constructor(services: ServerServices, maxRunsPerUser: number) {
    const { recoverMs } = services;
    this.#services = services;
    this.#slots = new RunSlots(maxRunsPerUser);
    if (recoverMs === 0) return;
    const look = (): void => void this.#sweep().catch(services.report);
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
    const before = this.#looks.get(sessionId);
    const look = (async () => {
      await before?.catch(() => {});
      const due = await this.#dueIn(sessionId, any);
      return due && (await this.#begin(due));
    })();
    this.#looks.set(sessionId, look);
    try {
      return await look;
    } finally {
      if (this.#looks.get(sessionId) === look) this.#looks.delete(sessionId);
    }
  }

  async #dueIn(sessionId: string, any: boolean): Promise<DueRun | null> {
    const { store, drain } = this.#services;
    if (drain.aborted || this.#runs.size >= RUNNING_MAX) return null;
    const head = await store.head(sessionId);
    const open = head && nextRun(head.openRuns, new Date().toISOString());
    if (head === null || open === null || (await store.leaseOf(sessionId)) !== null) return null;
    const entry = await store.getEntry(sessionId, requestIdOf(open.runId));
    const request = entry?.type === "run_request" ? entry : null;
    if (request === null && !any) return null;
    return { head, open, request, origin: request === null ? await readRunOrigin(store, head) : null };
  }

  async #begin(due: DueRun): Promise<HeldRun | null> {
    const { header } = due.head;
    const userId = due.request?.by ?? header.userId ?? "";
    if (!this.#slots.take(userId, header.id)) return null;
    let held: HeldRun | null = null;
    try {
      held = isGroup(due) ? await this.#beginGroup(due) : await this.#beginAgent(due);
      return held;
    } finally {
      if (held === null) this.#leave(userId);
      else void held.ended.then(() => this.#leave(userId)).then(() => this.ring(header.id));
    }
  }

  async #beginAgent({ head, origin }: DueRun): Promise<HeldRun | null> {
    const { manager, agents, models, unasked, park } = this.#services;
    const { id: sessionId } = head.header;
    let input: Session | null = null;
    const found = await manager.recover(sessionId, (name) => agentOf(agents, name ?? origin?.agent ?? null, origin), {
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

  async #beginGroup({ head, open, request, origin }: DueRun): Promise<HeldRun | null> {
    const { groups, unasked } = this.#services;
    const { id: sessionId } = head.header;
    const name = request?.group ?? origin?.group?.name ?? onlyOf(groups);
    const group = groups.get(name);
    if (group === undefined) throw new HttpError("GROUP_NOT_FOUND", `The server has no group ${JSON.stringify(name)}.`);
    const run = group.stream(sessionId, null, { runId: open.runId, turns: false, ...(unasked && { unasked }) });
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
    return this.#hold(sessionId, run.id, run, done, LASTING_OF_GROUPS);
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

function isGroup({ request, origin }: DueRun): boolean {
  return request?.group !== undefined || origin?.group != null;
}

/** The agent of that name; where none was named, the first. An old log may name one that is gone. */
function agentOf(agents: ReadonlyMap<string, Agent>, name: string | null, origin: RunOrigin | null): Agent | null {
  const [first = null] = agents.values();
  if (name === null) return first;
  return agents.get(name) ?? (origin === null ? null : first);
}

function onlyOf(groups: ServerServices["groups"]): string {
  const [name, another] = [...groups.keys()];
  if (name !== undefined && another === undefined) return name;
  throw new HttpError("GROUP_NOT_FOUND", "The log does not say which group was at work; go on with it in a program.");
}

function isMissing(error: unknown): boolean {
  const code = error instanceof SessionError || error instanceof HttpError ? error.code : "";
  return ["AGENT_NOT_FOUND", "MODEL_NOT_FOUND", "GROUP_NOT_FOUND"].includes(code);
}
