import { drainRuns } from "../../../agent/active-runs.ts";
import { statusError } from "../../../session/append-guard.ts";
import { SessionBusyError, SessionCapacityError, SessionError, show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/fold.ts";
import type { Session } from "../../../session/session.ts";
import type { RunRequest } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import type { Caller, ServerRuns, ServerServices } from "../server-services.ts";
import { visibleHead } from "../session-access.ts";
import { HostedRun, type StartedRun } from "./hosted-run.ts";
import { inputOf, readRunOrigin } from "./run-origin.ts";
import { RunSlots } from "./run-slots.ts";
import { startAgentRun, startedAgentRun, startGroupRun } from "./start-run.ts";

const RUNNING_MAX = 1000;
const ENDED_MAX = 1000;
const ENDED_CHARACTERS_MAX = 64_000_000;
const ENDED_KEPT_MS = 5 * 60_000;

/** Who wants to start a run, and what they do where they have to wait. */
interface Entering {
  readonly caller: Caller;
  readonly ifBusy: NonNullable<RunRequest["ifBusy"]>;
  readonly signal: AbortSignal;
}

/**
 * The runs of a server, and for a while those that have ended.
 *
 * - A run goes on whether or not anyone reads its events.
 * - A run of a session that is another's is as good as missing.
 * - Of two runs on one session, one waits, gives way or is refused; they never work in it at once.
 */
export class RunRegistry implements ServerRuns {
  readonly #services: ServerServices;
  /** In the order in which they began. */
  readonly #runs = new Map<string, HostedRun>();
  /** In the order in which they ended, each with the timer that forgets it. */
  readonly #ended = new Map<HostedRun, NodeJS.Timeout>();
  readonly #recovering = new Set<string>();
  readonly #slots: RunSlots;
  #starting = 0;

  constructor(services: ServerServices, { maxRunsPerUser }: { readonly maxRunsPerUser: number }) {
    this.#services = services;
    this.#slots = new RunSlots(maxRunsPerUser);
  }

  has(runId: string): boolean {
    return this.#runs.get(runId)?.pending === true;
  }

  async idle(): Promise<void> {
    for (let running = this.#running(); running.length > 0; running = this.#running()) {
      await Promise.all(running.map(({ ended }) => ended));
    }
  }

  abortAll(): void {
    const ids = this.#running().flatMap(({ drainId }) => drainId ?? []);
    void drainRuns({ timeoutMs: 0, ids }).catch(this.#services.report);
  }

  /** Starts a run on a session. With `reject`, it has the session when this resolves. The signal ends waiting for a place. */
  async start(sessionId: string, request: RunRequest, caller: Caller, signal: AbortSignal): Promise<HostedRun> {
    const { input, ifBusy = "reject", model: modelId = null } = request;
    const head = await this.#writable(sessionId, caller);
    const options = { ...this.#services, sessionId, actor: caller, ifBusy };
    if (request.group !== undefined) {
      const { group: name } = request;
      if (request.agent !== undefined || modelId !== null) {
        throw new HttpError("INVALID_REQUEST", "A group answers with its own agents and models; leave those out.");
      }
      const group = this.#groupNamed(name);
      return this.#host(head, { agent: null, group: name }, { caller, ifBusy, signal }, () =>
        startGroupRun(group, input, { ...options, name }),
      );
    }
    const [name, agent] = this.#agentNamed(request.agent ?? null);
    const model = modelId === null ? null : this.#modelNamed(modelId);
    const place = (said: Session): Session =>
      this.#placed(inputOf(said, { agent: name, model: modelId }, head.header.sandbox), head);
    return this.#host(head, { agent: name, group: null }, { caller, ifBusy, signal }, () =>
      startAgentRun(agent, input, { ...options, model, place }),
    );
  }

  /** Goes on with the run of a session whose process has died or was shut down; null when there is none. */
  async recover(sessionId: string, caller: Caller): Promise<HostedRun | null> {
    if (this.#recovering.has(sessionId)) throw new SessionBusyError(sessionId, "another request to recover it");
    this.#recovering.add(sessionId);
    try {
      const head = await this.#writable(sessionId, caller);
      if (head.openRuns.length === 0) return null;
      return await this.#recover(head, caller).catch(async (error: unknown) => {
        // Another process may have gone on with it to its end in the moment between.
        const now = isConflict(error) ? await this.#writable(sessionId, caller) : head;
        if (now.openRuns.length === 0) return null;
        throw error;
      });
    } finally {
      this.#recovering.delete(sessionId);
    }
  }

  /** @throws {HttpError} `RUN_NOT_FOUND` for a run that is not there, or not for the caller. */
  find(runId: string, caller: Caller): HostedRun {
    const run = this.#runs.get(runId);
    if (run === undefined || !(caller.admin || run.about.userId === caller.userId)) {
      throw new HttpError(
        "RUN_NOT_FOUND",
        `There is no run ${show(runId)} here; its session's entries say what became of it.`,
      );
    }
    return run;
  }

  /** The runs of a session, the latest first. */
  async list(sessionId: string, caller: Caller): Promise<readonly HostedRun[]> {
    await visibleHead(this.#services, sessionId, caller);
    return [...this.#runs.values()].filter(({ about }) => about.sessionId === sessionId).reverse();
  }

  async #recover(head: SessionHead, caller: Caller): Promise<HostedRun> {
    const { store, manager, unasked } = this.#services;
    const sessionId = head.header.id;
    const lease = await store.leaseOf(sessionId);
    if (lease !== null) throw new SessionBusyError(sessionId, `run ${lease.runId}`);
    const origin = await readRunOrigin(store, head);
    const entering = { caller, ifBusy: "reject", signal: this.#services.drain } as const;
    const options = { ...this.#services, sessionId, actor: caller, ifBusy: "reject" } as const;
    if (origin.group !== null) {
      const name = origin.group.name ?? this.#onlyGroup();
      const group = this.#groupNamed(name);
      return this.#host(head, { agent: null, group: name }, entering, () =>
        startGroupRun(group, null, { ...options, name }),
      );
    }
    const known = origin.agent !== null && this.#services.agents.has(origin.agent);
    const [name, agent] = this.#agentNamed(known ? origin.agent : null);
    const model = origin.model === null ? null : this.#services.models(origin.model);
    return this.#host(head, { agent: name, group: null }, entering, async () => {
      const begun: Session[] = [];
      const found = await manager.recover(sessionId, () => agent, {
        actor: caller,
        place: (input) => {
          const placed = this.#placed(input, head);
          begun.push(placed);
          return placed;
        },
        models: this.#services.models,
        ...(model === null ? {} : { model }),
        ...(unasked && { unasked }),
      });
      if (found === null) throw new SessionError("CONFLICT", `Another run went on in session ${sessionId} meanwhile.`);
      return startedAgentRun(found.run, begun);
    });
  }

  async #host(
    { header }: SessionHead,
    who: { readonly agent: string | null; readonly group: string | null },
    entering: Entering,
    start: () => Promise<StartedRun>,
  ): Promise<HostedRun> {
    const { report } = this.#services;
    this.#checkOpen();
    const leave = await this.#enter(header.id, entering);
    const startedBy = entering.caller.userId;
    this.#starting += 1;
    try {
      if (this.#running().length + this.#starting > RUNNING_MAX) throw new SessionCapacityError("runs", RUNNING_MAX);
      const started = await start();
      const run = new HostedRun(started, { sessionId: header.id, userId: header.userId, startedBy, ...who }, report);
      this.#runs.set(run.runId, run);
      void run.ended.then(leave).then(() => this.#retire(run));
      return run;
    } catch (error) {
      leave();
      throw error;
    } finally {
      this.#starting -= 1;
    }
  }

  /** Takes one of the caller's places for runs; a run that is to give way to this one gives its place, too. */
  async #enter(sessionId: string, { caller: { userId }, ifBusy, signal }: Entering): Promise<() => void> {
    const { drain } = this.#services;
    const inTheWay = ifBusy === "interrupt" ? this.#holdersOf(sessionId) : [];
    const wait = ifBusy === "enqueue" || inTheWay.some(({ about }) => about.startedBy === userId);
    const refused = !wait && this.#slots.isFull(userId);
    const taking = this.#slots.take(userId, { wait, signal: AbortSignal.any([signal, drain]) });
    if (!refused) for (const run of inTheWay) void run.abort("Another run takes its place.");
    try {
      return await taking;
    } catch (error) {
      this.#checkOpen();
      if (error instanceof HttpError) throw error;
      throw new HttpError("INVALID_REQUEST", "The client left before the run could begin.");
    }
  }

  #checkOpen(): void {
    if (!this.#services.drain.aborted) return;
    throw new HttpError("DRAINING", "The server is shutting down; try again later.");
  }

  /** Keeps a run that has ended for those who come back for its end. */
  #retire(run: HostedRun): void {
    this.#ended.set(run, setTimeout(() => this.#forget(run), ENDED_KEPT_MS).unref());
    let characters = [...this.#ended.keys()].reduce((sum, { events }) => sum + events.characters, 0);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= ENDED_MAX && characters <= ENDED_CHARACTERS_MAX) return;
      characters -= oldest.events.characters;
      this.#forget(oldest);
    }
  }

  #forget(run: HostedRun): void {
    // A timer holds what it is for.
    clearTimeout(this.#ended.get(run));
    this.#ended.delete(run);
    if (this.#runs.get(run.runId) === run) this.#runs.delete(run.runId);
  }

  #running(): readonly HostedRun[] {
    return [...this.#runs.values()].filter(({ pending }) => pending);
  }

  /** Who has the session: the manager's line of runs and groups do not know of each other. */
  #holdersOf(sessionId: string): readonly HostedRun[] {
    return this.#running().filter((run) => run.about.sessionId === sessionId && run.hasSession);
  }

  async #writable(sessionId: string, actor: Caller): Promise<SessionHead> {
    const head = await visibleHead(this.#services, sessionId, actor);
    if (head.status !== "active") throw statusError(sessionId, head.status);
    return head;
  }

  /** What a run begins with, aimed at the place of the session's user where the session has none. */
  #placed(input: Session, { header }: SessionHead): Session {
    const place = this.#services.placeOf(header.userId);
    if (place === null || input.sandboxBackend !== null) return input;
    return input.to(place.backend, place.spec);
  }

  #agentNamed(name: string | null): readonly [string, NonNullable<ReturnType<ServerServices["agents"]["get"]>>] {
    const { agents } = this.#services;
    const found = [...agents].find(([candidate]) => name === null || candidate === name);
    if (found !== undefined) return found;
    throw new HttpError("AGENT_NOT_FOUND", `The server has no agent ${name === null ? "at all" : show(name)}.`);
  }

  #groupNamed(name: string): NonNullable<ReturnType<ServerServices["groups"]["get"]>> {
    const group = this.#services.groups.get(name);
    if (group === undefined) throw new HttpError("GROUP_NOT_FOUND", `The server has no group ${show(name)}.`);
    return group;
  }

  #onlyGroup(): string {
    const [name, another] = [...this.#services.groups.keys()];
    if (name !== undefined && another === undefined) return name;
    throw new HttpError("GROUP_NOT_FOUND", "The log does not say which group was at work; go on with it in a program.");
  }

  #modelNamed(id: string): NonNullable<ReturnType<ServerServices["models"]>> {
    const model = this.#services.models(id);
    if (model === null) throw new HttpError("MODEL_NOT_FOUND", `The server has no model ${show(id)}.`);
    return model;
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof SessionError && error.code === "CONFLICT";
}
