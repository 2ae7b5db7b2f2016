import { defined } from "../internal/defined.ts";
import type { Agent } from "../agent/agent.ts";
import type { OutputSchema, SessionRun } from "../agent/session-run.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { statusError } from "../session/log/append-guard.ts";
import { SessionNotFoundError, SessionTransitionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { Payer } from "../session/payer.ts";
import type { RunInput } from "../session/run-input.ts";
import { checkArgument, checkOptionsOf, isObject } from "../session/check-arguments.ts";
import { makeWorkspace, namedPath } from "../stores/named-path.ts";
import type { Content } from "../session/message.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import { type SessionState, stateOf } from "../session/state/state.ts";
import type {
  AppendResult,
  Checkpoint,
  CreateOptions,
  SessionPage,
  SessionQuery,
  SessionStore,
} from "../session/store.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { type ActorOptions, byOf, LOCAL_USER, viewerOf } from "./access.ts";
import { AfterWrite } from "./after-write.ts";
import { UserBudgets } from "./budgets/user-budgets.ts";
import { BranchManager } from "./merge/branch-manager.ts";
import { checkHealth, type Health, type HealthOptions } from "./check-health.ts";
import { type CheckpointInit, CheckpointManager, restoreLeaf } from "./checkpoints/checkpoint-manager.ts";
import { type CreateSession, newHeader } from "./create-session.ts";
import { erase } from "./erase/erase.ts";
import type { EraseOptions, EraseReport, EraseTarget } from "./erase/erase-report.ts";
import { exportUser } from "./erase/export-user.ts";
import { type DueRun, findDueRun } from "./runs/due-run.ts";
import { listRuns, type RunsPage, type RunsQuery } from "./runs/list-runs.ts";
import { listVisible } from "./list-visible.ts";
import { type HeadOptions, ManagedSessions } from "./managed-sessions.ts";
import { checkArgumentsOf, checkNewRun, MANAGER_ARGUMENTS, RUN, RUN_HABITS } from "./manager-arguments.ts";
import { type ManagedRun, type ManagedRunOptions, manageRun, type NewRunOptions } from "./runs/manage-run.ts";
import {
  type ApproveOptions,
  type CancelRun,
  type DenyOptions,
  ManagedRuns,
  type QuestionName,
  type RequestedRun,
  type RequestOptions,
  type ManagedRunRequest,
} from "./runs/managed-runs.ts";
import {
  checkInit,
  type ManagedForkOptions,
  type ManagedStateOptions,
  type SessionManagerInit,
} from "./manager-options.ts";
import type { MergeResult, MergeStrategy } from "./merge/merge-strategy.ts";
import { readState } from "./read-state.ts";
import { type AgentsByName, type RecoveredRun, type RecoverOptions, recoverRun } from "./runs/recover-run.ts";
import { type ReportFailure, safeReport, warnOfFailure } from "./report-failure.ts";
import { checkSessionConfig, type SessionConfig } from "./session-config.ts";
import { SessionEvents } from "./session-events.ts";
import { Sweeper, type SweepOptions } from "./sweeper.ts";
import { checkDistinctCalls } from "../session/log/distinct-calls.ts";
import { type TurnInput, turnDraft } from "./turn-input.ts";

/**
 * Manages the sessions of many users on one store.
 *
 * - Every operation is one atomic append of the store, so any number of managers and processes can share it.
 * - With an `actor`, sessions of other users count as missing, in every operation.
 * - A refused call changes nothing, except that a write to an expired session records its expiry.
 * - Memory, consolidator and listeners are called after the durable write; they cannot undo it, fail it or delay it.
 */
export class SessionManager implements AsyncDisposable {
  readonly store: SessionStore;
  readonly config: SessionConfig;
  readonly events: SessionEvents;
  /** How much users may spend, and have spent; null without budgets. */
  readonly budgets: UserBudgets | null;
  readonly #clock: () => Date;
  readonly #ids: () => string;
  readonly #report: ReportFailure;
  readonly #afterWrite: AfterWrite;
  readonly #checkpoints: CheckpointManager;
  readonly #branches: BranchManager;
  readonly #sessions: ManagedSessions;
  readonly #sweeper: Sweeper;
  readonly #runs: ManagedRuns;
  readonly #workspace: string | null;
  readonly #userId: string;

  constructor(init: SessionManagerInit) {
    const { store, clock = () => new Date(), ids = uuidv7, memory = null, consolidator = null } = checkInit(init);
    const config = checkSessionConfig(init.config);
    const report = safeReport(init.onError ?? warnOfFailure);
    this.store = store;
    this.config = config;
    this.events = init.events ?? new SessionEvents({ onError: report });
    this.#clock = clock;
    this.#ids = ids;
    this.#report = report;
    this.#workspace = init.workspace === undefined ? null : namedPath(init.workspace);
    this.#userId = init.userId ?? LOCAL_USER;
    const { budgets } = init;
    this.budgets = budgets === undefined ? null : new UserBudgets({ store, budgets, clock, userId: this.#userId });
    this.#afterWrite = new AfterWrite({ store, memory, consolidator, report });
    this.#checkpoints = new CheckpointManager(store, { maxPerSession: config.maxCheckpointsPerSession, clock, ids });
    this.#branches = new BranchManager(store, { maxPerSession: config.maxBranchesPerSession, clock, ids });
    const [events, checkpoints, afterWrite] = [this.events, this.#checkpoints, this.#afterWrite];
    this.#sessions = new ManagedSessions({ store, config, events, afterWrite, checkpoints, report, clock });
    this.#runs = new ManagedRuns({ store, sessions: this.#sessions, clock });
    const { expiry } = this.#sessions;
    this.#sweeper = new Sweeper({ store, expiry, report, intervalSeconds: config.cleanupInterval });
  }

  /** Creates an active session. @throws {SessionCapacityError} if its user already has `maxSessionsPerUser` open sessions. */
  async create(init: CreateSession, options: ActorOptions = {}): Promise<SessionState> {
    const viewer = viewerOf(options);
    const header = newHeader(init, { viewer, ids: this.#ids, clock: this.#clock, workspace: this.#workspace });
    if (header.sandbox !== null && init.sandbox === undefined) await makeWorkspace(this.#workspace as string);
    return this.#create(header, init, options);
  }

  async #create(header: SessionHeader, init: CreateSession, options: ActorOptions): Promise<SessionState> {
    const { systemPrompt = this.config.defaultSystemPrompt } = init;
    const settings = { type: "variables", set: {}, unset: [], systemPrompt, ...byOf(options) } as const;
    const { maxSessionsPerUser: maxOpenPerUser, variablesBytesMax } = this.config;
    const limits = { maxOpenPerUser, variablesBytesMax };
    const create = (): Promise<SessionHead> =>
      this.store.create(
        header,
        systemPrompt === null ? limits : ({ ...limits, entries: [settings] } satisfies CreateOptions),
      );
    const head = await this.#sessions.withRoom(header.userId, create);
    this.#sessions.announce("created", head, {});
    return stateOf(head, await this.store.settings(header.id, head.path), [], { checkpointId: null });
  }

  /** Makes a suspended session active again; null if it is missing. */
  async resume(id: string, options: ManagedStateOptions = {}): Promise<SessionState | null> {
    const found = await this.#sessions.find(id, options);
    if (found === null) return null;
    try {
      const head = await this.#sessions.resume(await this.#sessions.expiry.expireIfDue(found), options);
      return await readState(this.store, head, options);
    } catch (error) {
      if (error instanceof SessionNotFoundError) return null;
      throw error;
    }
  }

  /**
   * Opens the session as a tree, and resumes it if it is suspended. Appends through the tree count as turns, and are refused if
   * the session is closed or full. With `resume: false`, only an active session is opened.
   */
  async open(id: string, options: ActorOptions & { readonly resume?: boolean } = {}): Promise<SessionTree> {
    const head = await this.#sessions.prepare(id, options);
    if (head.status !== "active") {
      if (options.resume === false) throw statusError(id, head.status);
      try {
        await this.#sessions.resume(head, options);
      } catch (error) {
        // It was resumed concurrently.
        if (!(error instanceof SessionTransitionError)) throw error;
      }
    }
    return this.#tree(id, options);
  }

  /** Adds a turn. Idempotent: repeating the `turnId` with the same content returns the stored turn. */
  async addTurn(id: string, turn: TurnInput, options: ActorOptions = {}): Promise<void> {
    const drafts = checkDistinctCalls([turnDraft(turn)]);
    const { version } = await this.#sessions.prepare(id, options);
    const result = await this.store.append(id, drafts, { guard: this.#sessions.guard, ...byOf(options) });
    const entries = result.entries.filter(({ seq }) => seq >= version);
    await this.#sessions.appended({ ...result, entries });
  }

  /** The head of the session, with its current status; null if it is missing. */
  async head(id: string, options: HeadOptions = {}): Promise<SessionHead | null> {
    const head = await this.#sessions.find(id, options);
    return head === null ? null : this.#sessions.expiry.asSeen(head);
  }

  /** The state of the session; null if it is missing. */
  async getState(id: string, options: ManagedStateOptions = {}): Promise<SessionState | null> {
    const head = await this.#sessions.find(id, options);
    return head === null ? null : readState(this.store, this.#sessions.expiry.asSeen(head), options);
  }

  /** One page of sessions, those with the latest message first; with an actor, only the actor's. */
  async list(query: SessionQuery = {}, options: ActorOptions = {}): Promise<SessionPage> {
    return listVisible({ store: this.store, expiry: this.#sessions.expiry }, query, viewerOf(options));
  }

  /** Suspends an active session: it accepts no turns until it is resumed. */
  async suspend(id: string, options: ManagedStateOptions = {}): Promise<SessionState> {
    const head = await this.#sessions.transition(await this.#sessions.prepare(id, options), "suspended", options);
    this.#sessions.announce("suspended", head, {});
    return readState(this.store, head, options);
  }

  /** Closes an active or suspended session for good. */
  async close(id: string, options: ActorOptions & { readonly reason?: string } = {}): Promise<void> {
    const head = await this.#sessions.transition(await this.#sessions.prepare(id, options), "closed", options);
    const durationSeconds = this.#sessions.durationSeconds(head, this.#clock());
    this.#sessions.ended(head, { durationSeconds, reason: options.reason ?? null });
  }

  /** Deletes a session with its checkpoints, whatever its status; false if it is missing. Its branches are kept. */
  async delete(id: string, options: ActorOptions = {}): Promise<boolean> {
    if ((await this.#sessions.find(id, options)) === null) return false;
    // A failure to free files must not prevent the deletion.
    for (const error of await this.#checkpoints.deleteAll(id)) this.#report(error, { during: "delete", sessionId: id });
    return this.store.delete(id);
  }

  /**
   * Erases a session or everything of a user for good: runs, logs, checkpoints with their files, and the user's words in sessions
   * of others. Idempotent: a repeated call continues an interrupted erasure, and returns the same report.
   */
  async erase(target: EraseTarget, options: EraseOptions = {}): Promise<EraseReport> {
    const [store, checkpoints, clock] = [this.store, this.#checkpoints, this.#clock];
    const cancel = (id: string, runId: string): Promise<boolean> => this.cancel(id, { runId, reason: "erased" });
    return erase({ store, checkpoints, clock, cancel }, target, options);
  }

  /** Everything stored about a user, as one archive (tar): sessions, checkpoints, and their words in sessions of others. */
  exportUser(userId: string): AsyncIterable<Uint8Array> {
    return exportUser(this.store, userId, this.#clock());
  }

  /** Creates a checkpoint of the session's current position, with the files of a sandbox if one is given. */
  async checkpoint(
    id: string,
    options: ActorOptions & Pick<CheckpointInit, "metadata" | "sandbox" | "spare"> = {},
  ): Promise<Checkpoint> {
    const head = await this.#sessions.read(id, options);
    const { metadata, sandbox, spare } = options;
    const checkpoint = await this.#checkpoints.create(id, {
      ...defined({ metadata, sandbox, spare }),
      ...byOf(options),
    });
    this.#sessions.announce("checkpointCreated", head, { checkpoint, automatic: false });
    return checkpoint;
  }

  /**
   * Restores a checkpoint: moves the leaf there, without deleting entries, and restores the files of a sandbox if one is given.
   */
  async restore(
    checkpointId: string,
    options: ManagedStateOptions & { readonly sandbox?: Sandbox } = {},
  ): Promise<SessionState> {
    const [store, sessions, checkpoints] = [this.store, this.#sessions, this.#checkpoints];
    const head = await restoreLeaf({ store, sessions, checkpoints }, checkpointId, options);
    this.#sessions.announce("restored", head, { checkpointId });
    return readState(this.store, head, options);
  }

  /** Forks the session: creates an active one that begins with its entries, up to its end, a checkpoint or an entry. */
  async fork(id: string, branchName: string, options: ManagedForkOptions = {}): Promise<SessionState> {
    const head = await this.#sessions.read(id, options);
    const { fromCheckpoint, at, turns, counted = false } = options;
    const { maxSessionsPerUser, variablesBytesMax } = this.config;
    // Field by field, so that the caller cannot set `userId`.
    const fork = (): Promise<SessionState> =>
      this.#branches.fork(id, branchName, {
        variablesBytesMax,
        ...byOf(options),
        ...(counted ? { maxOpenPerUser: maxSessionsPerUser } : {}),
        ...defined({ fromCheckpoint, at, turns }),
      });
    const branch = await (counted ? this.#sessions.withRoom(head.header.userId, fork) : fork());
    this.#sessions.announce("forked", head, { branchId: branch.sessionId, branchName });
    return branch;
  }

  /** Merges the new entries of a branch into its parent; with `dryRun`, only previews the merge. */
  async merge(
    parentId: string,
    branchId: string,
    options: ManagedStateOptions & { readonly strategy?: MergeStrategy; readonly dryRun?: boolean } = {},
  ): Promise<MergeResult> {
    const { actor: _actor, ...rest } = options;
    const dryRun = rest.dryRun === true;
    const { maxTurnsPerSession: maxTurns, variablesBytesMax } = this.config;
    const parent = await (dryRun ? this.#sessions.read(parentId, options) : this.#sessions.prepare(parentId, options));
    await this.#sessions.read(branchId, options);
    if (parent.status !== "active") throw statusError(parentId, parent.status);
    const result = await this.#branches.merge(parentId, branchId, {
      ...rest,
      ...byOf(options),
      maxTurns,
      variablesBytesMax,
    });
    if (!dryRun) this.#sessions.announce("merged", parent, { branchId, appended: result.appended.length });
    return result;
  }

  /**
   * Runs an agent in a new session, or in the session whose id is the first argument. Every entry is durable before the run
   * continues.
   *
   * Returns the run synchronously, with its `sessionId`. If the session is missing, not active, full or busy, the run fails; an
   * invalid set-up throws here, before anything is stored. In an existing session with a `runId`, or if the run has to wait, it
   * is recorded as a request: another process takes it up if this one dies, and the same `runId` again is the same run.
   */
  run<const S extends OutputSchema = undefined>(
    agent: Agent,
    input: RunInput,
    options?: NewRunOptions & { readonly output?: S },
  ): SessionRun<S, string>;
  run<const S extends OutputSchema = undefined>(
    sessionId: string,
    agent: Agent,
    input: RunInput,
    options?: ManagedRunOptions & { readonly output?: S },
  ): SessionRun<S, string>;
  run(
    first: string | Agent,
    second: Agent | RunInput,
    third?: RunInput | NewRunOptions,
    fourth?: ManagedRunOptions,
  ): SessionRun<undefined, string> {
    if (typeof first === "string") return this.#runInSession(first, second as Agent, third as RunInput, fourth);
    const isAgent = typeof first?.run === "function";
    checkArgument(
      isAgent,
      first,
      "run",
      "an agent, or a session's id and an agent: run(answer.sessionId, agent, input)",
    );
    return this.#runInNewSession(first, second as RunInput, third as NewRunOptions | undefined);
  }

  /**
   * Requests a run, which any process can start with `recover`. Idempotent by `runId`: the same request again returns the same
   * run, in whatever state it is. Returns the session's head, too.
   *
   * @throws {SessionBusyError} while a run is open, with `ifBusy: "reject"`.
   * @throws {SessionError} `CONFLICT` for a different request under a `runId` that is in use.
   */
  async request(id: string, request: ManagedRunRequest, options: RequestOptions = {}): Promise<RequestedRun> {
    return this.#runs.request(id, request, options);
  }

  /**
   * Cancels a run in whatever process it is: the running one, or else the first in the queue, unless `runId` names one. False if
   * there is none. A running run ends itself soon after.
   */
  async cancel(id: string, which: CancelRun = {}, options: ActorOptions = {}): Promise<boolean> {
    return this.#runs.cancel(id, which, options);
  }

  /** Adds a message before the next round of the running run. @throws {SessionError} `RUN_ENDED` if no run is running. */
  async steer(id: string, content: Content, options: ActorOptions = {}): Promise<void> {
    await this.#runs.say(id, "steer", content, options);
  }

  /** Adds a message when the running run would stop. @throws {SessionError} `RUN_ENDED` if no run is running. */
  async followUp(id: string, content: Content, options: ActorOptions = {}): Promise<void> {
    await this.#runs.say(id, "followUp", content, options);
  }

  /**
   * Approves a call that waits for approval, by its question or the question's id, in whatever process it waits. The first answer
   * wins. A parked run continues in a worker or server that has its agent, or with `recover`.
   *
   * @throws {SessionError} `QUESTION_NOT_FOUND` unless an open run of the session has that question, `CONFLICT` if it has another
   * answer or has expired.
   */
  async approve(
    id: string,
    question: QuestionName,
    word: ApproveOptions = {},
    options: ActorOptions = {},
  ): Promise<void> {
    await this.#runs.answer(id, question, { ...word, decision: { approved: true } }, options);
  }

  /** Denies a call that waits for approval, likewise. The model receives the reason. */
  async deny(id: string, question: QuestionName, word: DenyOptions = {}, options: ActorOptions = {}): Promise<void> {
    const { reason = null, ...rest } = word;
    await this.#runs.answer(id, question, { ...rest, decision: { approved: false, reason } }, options);
  }

  /** One page of open runs in a state; with an actor, only runs of the actor's sessions. */
  async runs(query: RunsQuery, options: ActorOptions = {}): Promise<RunsPage> {
    checkArgument(isObject(query), query, "runs", 'a query, such as { state: "asking" }');
    return listRuns(this.store, query, viewerOf(options));
  }

  /** The run of a session that is due: no process has it, and it could start or continue now; null if there is none. */
  async due(id: string, options: ActorOptions = {}): Promise<DueRun | null> {
    return findDueRun(this.#inSession(id, options), id, options);
  }

  /**
   * Takes up the run that is due in a session: continues a run whose process has died or whose questions are answered, or starts
   * a requested one. Null if none is due, or if another process has claimed it.
   *
   * @throws {SessionError} `AGENT_NOT_FOUND` or `MODEL_NOT_FOUND` if the run's agent or model is missing here; the run stays due.
   */
  async recover(id: string, agents: AgentsByName, options: RecoverOptions = {}): Promise<RecoveredRun | null> {
    return recoverRun(this.#inSession(id, options), agents, options);
  }

  /** Records the expiry of idle sessions; returns how many it recorded. */
  async sweep(options: SweepOptions = {}): Promise<number> {
    return this.#sweeper.sweep(options);
  }

  /** Starts to sweep every `cleanupInterval` seconds. The timer does not keep the process alive. */
  start(): void {
    this.#sweeper.start();
  }

  /** Stops the timer; resolves when no sweep is running. */
  stop(): Promise<void> {
    return this.#sweeper.stop();
  }

  /** Pings the store with a timeout (default: 5 seconds). */
  async health(options: HealthOptions = {}): Promise<Health> {
    return checkHealth(this.store, options);
  }

  /** Waits for background work of memory and consolidator; false after the timeout (default: 10 seconds). */
  async settled({ timeoutMs }: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    return this.#afterWrite.settled(timeoutMs);
  }

  /** Stops sweeping and waits for memory and consolidator. The store stays open. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.settled();
  }

  /** Runs an agent in an existing session. */
  #runInSession(
    id: string,
    agent: Agent,
    input: RunInput,
    options: ManagedRunOptions = {},
  ): SessionRun<undefined, string> {
    checkOptionsOf(options, RUN, "run", RUN_HABITS);
    viewerOf(options);
    return manageRun(this.#inSession(id, options), agent, input, options);
  }

  /** Runs an agent in a new session, which is created only after everything else is checked. */
  #runInNewSession(agent: Agent, input: RunInput, options: NewRunOptions = {}): SessionRun<undefined, string> {
    checkNewRun(options);
    const { userId = byOf(options).by ?? this.#userId, workspace: given, ...rest } = options;
    const viewer = viewerOf(options);
    const workspace = given === undefined ? this.#workspace : namedPath(given);
    const header = newHeader({ userId }, { viewer, ids: this.#ids, clock: this.#clock, workspace });
    const before = async (): Promise<void> => {
      if (workspace !== null) await makeWorkspace(workspace);
      await this.#create(header, { userId }, options);
    };
    return manageRun(this.#inSession(header.id, options), agent, input, { ...rest, before });
  }

  #inSession(sessionId: string, options: ActorOptions): ManagedRun {
    const [store, sessions, runs, workspace] = [this.store, this.#sessions, this.#runs, this.#workspace];
    const open = (head?: SessionHead): Promise<SessionTree> => this.#tree(sessionId, options, head);
    return { store, sessions, runs, budgets: this.budgets, clock: this.#clock, workspace, sessionId, open };
  }

  #tree(id: string, options: ActorOptions, known?: SessionHead): Promise<SessionTree> {
    const onAppend = (result: AppendResult): Promise<void> => this.#sessions.appended(result);
    const { by } = byOf(options);
    const payerIn = (head: SessionHead): Payer | null => this.budgets?.payerIn(head, by) ?? null;
    const given = defined({ by, head: known });
    return SessionTree.on(this.store, id, { guard: this.#sessions.guard, onAppend, payerIn, ...given });
  }
}

checkArgumentsOf(SessionManager.prototype, MANAGER_ARGUMENTS);
