import type { Agent } from "../agent/agent.ts";
import type { SessionRun } from "../agent/session-run.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { statusError } from "../session/append-guard.ts";
import {
  CheckpointNotFoundError,
  SessionCapacityError,
  SessionError,
  SessionNotFoundError,
  SessionTransitionError,
} from "../session/errors.ts";
import type { SessionHead } from "../session/fold.ts";
import type { Content } from "../session/message.ts";
import type { Sandbox } from "../session/sandbox.ts";
import { type SessionState, stateOf } from "../session/state.ts";
import type {
  AppendResult,
  Checkpoint,
  CreateOptions,
  SessionPage,
  SessionQuery,
  SessionStore,
} from "../session/store.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { type ActorOptions, byOf, viewerOf } from "./access.ts";
import { AfterWrite, type Consolidator, type WorkingMemory } from "./after-write.ts";
import { BranchManager } from "./branch-manager.ts";
import { checkHealth, checkTimeout, type Health, type HealthOptions } from "./check-health.ts";
import { type CheckpointInit, CheckpointManager } from "./checkpoint-manager.ts";
import { type CreateSession, newHeader } from "./create-session.ts";
import { listVisible } from "./list-visible.ts";
import { type HeadOptions, ManagedSessions } from "./managed-sessions.ts";
import { type ManagedRunOptions, manageRun } from "./manage-run.ts";
import type { MergeResult, MergeStrategy } from "./merge-strategy.ts";
import { readState, type StateOptions } from "./read-state.ts";
import { type ReportFailure, safeReport, warnOfFailure } from "./report-failure.ts";
import { RunLine } from "./run-line.ts";
import { checkSessionConfig, type SessionConfig } from "./session-config.ts";
import { SessionEvents } from "./session-events.ts";
import { Sweeper, type SweepOptions } from "./sweeper.ts";
import { type TurnInput, turnDraft } from "./turn-input.ts";

const SETTLE_MS_DEFAULT = 10_000;

/** What a manager is made of. */
export interface SessionManagerInit {
  readonly store: SessionStore;
  /** Limits and times; what is not given has its default. */
  readonly config?: Partial<SessionConfig>;
  /** Gets every turn once it is durable. */
  readonly memory?: WorkingMemory;
  /** Gets every session that was closed or expired. */
  readonly consolidator?: Consolidator;
  /** Where events go (default: a set of listeners of this manager's own). */
  readonly events?: SessionEvents;
  /** Told when memory, consolidator, a listener or a sweep fails (default: a process warning). */
  readonly onError?: ReportFailure;
  /** What time it is; the system's clock unless given. */
  readonly clock?: () => Date;
  /** Makes ids of sessions, branches and checkpoints (default: UUIDv7). */
  readonly ids?: () => string;
}

/** On whose behalf, and what is to come back: without turns, a state costs the same whatever the session's length. */
export interface ManagedStateOptions extends ActorOptions, StateOptions {}

/** Where a fork begins. */
export interface ManagedForkOptions extends ManagedStateOptions {
  /** A checkpoint of the session, instead of where it stands now. */
  readonly fromCheckpoint?: string;
  /** The last entry that the fork takes over (null: none), instead of where the session stands now. */
  readonly at?: string | null;
  /** Whether it counts as a session of its user, so that `maxSessionsPerUser` holds for it (default false). */
  readonly counted?: boolean;
}

/**
 * Sessions of many users on one store.
 *
 * - Every operation is one atomic append of the store, so that any number of managers and processes may share it.
 * - With an `actor`, a session of another user is as good as missing, whatever the operation.
 * - A refused call has changed nothing, except that a write to a session that was idle for too long records its expiry.
 * - Memory, consolidator and listeners come after the durable write; none of them can undo it, fail it or hold it up.
 */
export class SessionManager implements AsyncDisposable {
  readonly store: SessionStore;
  readonly config: SessionConfig;
  readonly events: SessionEvents;
  readonly #clock: () => Date;
  readonly #ids: () => string;
  readonly #report: ReportFailure;
  readonly #afterWrite: AfterWrite;
  readonly #checkpoints: CheckpointManager;
  readonly #branches: BranchManager;
  readonly #sessions: ManagedSessions;
  readonly #sweeper: Sweeper;
  readonly #line = new RunLine();

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
    this.#afterWrite = new AfterWrite({ store, memory, consolidator, report });
    this.#checkpoints = new CheckpointManager(store, { maxPerSession: config.maxCheckpointsPerSession, clock, ids });
    this.#branches = new BranchManager(store, { maxPerSession: config.maxBranchesPerSession, clock, ids });
    const { events } = this;
    const checkpoints = this.#checkpoints;
    this.#sessions = new ManagedSessions({
      store,
      config,
      events,
      afterWrite: this.#afterWrite,
      checkpoints,
      report,
      clock,
    });
    const { expiry } = this.#sessions;
    this.#sweeper = new Sweeper({ store, expiry, report, intervalSeconds: config.cleanupInterval });
  }

  /** A new, active session. @throws {SessionCapacityError} when its user has as many open ones as the config allows. */
  async create(init: CreateSession, options: ActorOptions = {}): Promise<SessionState> {
    const viewer = viewerOf(options);
    const header = newHeader(init, { viewer, ids: this.#ids, clock: this.#clock });
    const { systemPrompt = this.config.defaultSystemPrompt } = init;
    const settings = { type: "variables", set: {}, unset: [], systemPrompt, ...byOf(options) } as const;
    const { maxSessionsPerUser: maxOpenPerUser, variablesBytesMax } = this.config;
    const limits = { maxOpenPerUser, variablesBytesMax };
    const create = (): Promise<SessionHead> =>
      this.store.create(
        header,
        systemPrompt === null ? limits : ({ ...limits, entries: [settings] } satisfies CreateOptions),
      );
    const head = await this.#withRoom(init.userId, create);
    this.#sessions.announce("created", head, {});
    return stateOf(head, await this.store.settings(header.id, head.path), [], { checkpointId: null });
  }

  /** Makes a suspended session active again; null when it is missing. */
  async resume(id: string, options: ManagedStateOptions = {}): Promise<SessionState | null> {
    const found = await this.#sessions.find(id, options);
    if (found === null) return null;
    try {
      const head = await this.#resume(await this.#sessions.expiry.settle(found), options);
      return await readState(this.store, head, options);
    } catch (error) {
      if (error instanceof SessionNotFoundError) return null;
      throw error;
    }
  }

  /**
   * The session as a tree, active: one that is suspended is resumed. What is appended through the tree counts as turns
   * like any other, and is refused once the session is closed or full. With `resume: false`, only an active one is opened.
   */
  async open(id: string, options: ActorOptions & { readonly resume?: boolean } = {}): Promise<SessionTree> {
    const head = await this.#sessions.prepare(id, options);
    if (head.status !== "active") {
      if (options.resume === false) throw statusError(id, head.status);
      try {
        await this.#resume(head, options);
      } catch (error) {
        // Someone else resumed it at the same moment.
        if (!(error instanceof SessionTransitionError)) throw error;
      }
    }
    return this.#tree(id, options);
  }

  /** Adds a turn. The same `turnId` with the same content is the same turn, so that a retry is safe. */
  async addTurn(id: string, turn: TurnInput, options: ActorOptions = {}): Promise<void> {
    const draft = turnDraft(turn);
    const { version } = await this.#sessions.prepare(id, options);
    const result = await this.store.append(id, [draft], { guard: this.#sessions.guard, ...byOf(options) });
    const entries = result.entries.filter(({ seq }) => seq >= version);
    await this.#sessions.appended({ ...result, entries });
  }

  /** The head of the session, with the status that it has now; null when it is missing. */
  async head(id: string, options: HeadOptions = {}): Promise<SessionHead | null> {
    const head = await this.#sessions.find(id, options);
    return head === null ? null : this.#sessions.expiry.seen(head);
  }

  /** What the session adds up to now; null when it is missing. */
  async getState(id: string, options: ManagedStateOptions = {}): Promise<SessionState | null> {
    const head = await this.#sessions.find(id, options);
    return head === null ? null : readState(this.store, this.#sessions.expiry.seen(head), options);
  }

  /** One page of sessions, those with the latest message first; for an actor, of their own ones. */
  async list(query: SessionQuery = {}, options: ActorOptions = {}): Promise<SessionPage> {
    return listVisible({ store: this.store, expiry: this.#sessions.expiry }, query, viewerOf(options));
  }

  /** Pauses an active session: it takes no turns until it is resumed. */
  async suspend(id: string, options: ManagedStateOptions = {}): Promise<SessionState> {
    const head = await this.#sessions.transition(await this.#sessions.prepare(id, options), "suspended", options);
    this.#sessions.announce("suspended", head, {});
    return readState(this.store, head, options);
  }

  /** Ends an active or suspended session for good. */
  async close(id: string, options: ActorOptions & { readonly reason?: string } = {}): Promise<void> {
    const { reason } = options;
    const head = await this.#sessions.transition(await this.#sessions.prepare(id, options), "closed", options);
    const durationSeconds = this.#sessions.durationSeconds(head, this.#clock());
    this.#sessions.ended(head, { durationSeconds, reason: reason ?? null });
  }

  /** Deletes a session with its checkpoints, whatever its status; false when it is missing. Branches of it stay. */
  async delete(id: string, options: ActorOptions = {}): Promise<boolean> {
    if ((await this.#sessions.find(id, options)) === null) return false;
    for (const checkpoint of await this.store.listCheckpoints(id)) {
      // Files that cannot be freed must not keep the session there.
      await this.#checkpoints.delete(checkpoint.id).catch((error: unknown) => {
        this.#report(error, { during: "delete", sessionId: id });
      });
    }
    return this.store.delete(id);
  }

  /** Marks where the session stands now, and the files of a sandbox with it where one is given. */
  async checkpoint(
    id: string,
    options: ActorOptions & Pick<CheckpointInit, "metadata" | "sandbox" | "spare"> = {},
  ): Promise<Checkpoint> {
    const head = await this.#sessions.read(id, options);
    const { metadata, sandbox, spare } = options;
    const checkpoint = await this.#checkpoints.create(id, {
      ...(metadata === undefined ? {} : { metadata }),
      ...(sandbox === undefined ? {} : { sandbox }),
      ...(spare === undefined ? {} : { spare }),
    });
    this.#sessions.announce("checkpointCreated", head, { checkpoint, automatic: false });
    return checkpoint;
  }

  /** Goes back to a checkpoint: the leaf moves there, nothing is erased, and a sandbox that is given gets its files back. */
  async restore(
    checkpointId: string,
    options: ManagedStateOptions & { readonly sandbox?: Sandbox } = {},
  ): Promise<SessionState> {
    viewerOf(options);
    const checkpoint = await this.store.loadCheckpoint(checkpointId);
    const found = checkpoint === null ? null : await this.#sessions.find(checkpoint.sessionId, options);
    if (checkpoint === null || found === null) throw new CheckpointNotFoundError(checkpointId);
    const { status } = await this.#sessions.expiry.settle(found);
    const { sessionId, leafId } = checkpoint;
    if (status !== "active") throw statusError(sessionId, status);
    const { sandbox } = options;
    // The files first: when they cannot be brought back, the conversation stays where it is, too.
    if (sandbox !== undefined) await this.#checkpoints.restore(checkpointId, { sandbox, turns: false });
    const moved = await this.store.append(sessionId, [{ type: "leaf", targetId: leafId }], {
      guard: { status: "active" },
      ...byOf(options),
    });
    this.#sessions.announce("restored", moved.head, { checkpointId });
    return readState(this.store, moved.head, options);
  }

  /** A new, active session that begins with what this one says, up to a checkpoint or an entry if one is named. */
  async fork(id: string, branchName: string, options: ManagedForkOptions = {}): Promise<SessionState> {
    const head = await this.#sessions.read(id, options);
    const { fromCheckpoint, at, turns, counted = false } = options;
    const { maxSessionsPerUser, variablesBytesMax } = this.config;
    // Field by field: whose the branch is, is not for the caller to say.
    const fork = (): Promise<SessionState> =>
      this.#branches.fork(id, branchName, {
        variablesBytesMax,
        ...byOf(options),
        ...(counted ? { maxOpenPerUser: maxSessionsPerUser } : {}),
        ...(fromCheckpoint === undefined ? {} : { fromCheckpoint }),
        ...(at === undefined ? {} : { at }),
        ...(turns === undefined ? {} : { turns }),
      });
    const branch = await (counted ? this.#withRoom(head.header.userId, fork) : fork());
    this.#sessions.announce("forked", head, { branchId: branch.sessionId, branchName });
    return branch;
  }

  /** Brings what a branch said since it was forked into its parent; with `dryRun`, only says what that would do. */
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
   * Runs the session through an agent, with what is said as its next turn. Every row is durable before the run goes on.
   *
   * The run comes back at once. A session that is missing, not active, full or busy is how it fails; a set-up that cannot
   * work throws here.
   */
  run(id: string, agent: Agent, input: Content, options: ManagedRunOptions = {}): SessionRun {
    viewerOf(options);
    const check = async (): Promise<void> => {
      const { status } = await this.#sessions.prepare(id, options);
      if (status !== "active") throw statusError(id, status);
    };
    const open = (): Promise<SessionTree> => this.#tree(id, options);
    return manageRun({ sessionId: id, line: this.#line, check, open }, agent, input, options);
  }

  /** Records the expiry of sessions that were idle for too long; how many it was. */
  async sweep(options: SweepOptions = {}): Promise<number> {
    return this.#sweeper.sweep(options);
  }

  /** Sweeps every `cleanupInterval` from now on. The timer keeps no process alive. */
  start(): void {
    this.#sweeper.start();
  }

  /** Ends the timer; resolves when no sweep is under way. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
  }

  /** Whether the store answers in time (default: within 5 seconds). */
  async health(options: HealthOptions = {}): Promise<Health> {
    return checkHealth(this.store, options);
  }

  /** Waits for what memory and consolidator still do; false when that takes longer (default: 10 seconds). */
  async settled({ timeoutMs = SETTLE_MS_DEFAULT }: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    checkTimeout(timeoutMs);
    return this.#afterWrite.settled(timeoutMs);
  }

  /** Stops sweeping and waits for memory and consolidator. The store stays open. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.settled();
  }

  #tree(id: string, options: ActorOptions): Promise<SessionTree> {
    const { guard } = this.#sessions;
    const onAppend = (result: AppendResult): Promise<void> => this.#sessions.appended(result);
    return SessionTree.on(this.store, id, { guard, onAppend, ...byOf(options) });
  }

  async #resume(head: SessionHead, options: ActorOptions): Promise<SessionHead> {
    const { id } = head.header;
    if (head.status === "closed" || head.status === "expired") throw statusError(id, head.status);
    try {
      const resumed = await this.#sessions.transition(head, "active", options);
      this.#sessions.announce("resumed", resumed, {});
      return resumed;
    } catch (error) {
      const ended = error instanceof SessionTransitionError && error.from !== "active" ? error.from : null;
      throw ended === null ? error : statusError(id, ended);
    }
  }

  /** Makes a session; sessions whose expiry nobody has recorded yet must not keep their user out. */
  async #withRoom<T>(userId: string | null, make: () => Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      const full = error instanceof SessionCapacityError && userId !== null;
      if (!full || !(await this.#expireOf(userId))) throw error;
      return make();
    }
  }

  /** Records the expiry of a user's sessions that is due; whether there was any. */
  async #expireOf(userId: string): Promise<boolean> {
    const { expiry } = this.#sessions;
    let [due, cursor] = [false, null as string | null];
    do {
      const from = cursor === null ? {} : { cursor };
      const page = await this.store.list({ userId, status: ["active", "suspended"], ...from });
      for (const head of page.items.filter((item) => expiry.isDue(item))) {
        due = true;
        await expiry.record(head);
      }
      cursor = page.next;
    } while (cursor !== null);
    return due;
  }
}

function checkInit(init: SessionManagerInit): SessionManagerInit {
  if (typeof init?.store?.append === "function") return init;
  throw new SessionError("INVALID_OPTION", "A session manager needs a store; open one with openStore.");
}
