import { setMaxListeners } from "node:events";
import { trackRun } from "../agent/active-runs.ts";
import { describeThrown } from "../agent/describe-thrown.ts";
import { EventLog, type EventListener, type Unsigned } from "../agent/event-log.ts";
import { followAbort } from "../agent/follow-abort.ts";
import { type Claim, claimRun, readRequest } from "../agent/persist/claim-run.ts";
import { StoreAccess } from "../agent/persist/log-access.ts";
import { isAddressedTo, LogFollower } from "../agent/persist/log-follower.ts";
import { RunDeadline } from "../agent/run-deadline.ts";
import { runErrorOf } from "../agent/run-error.ts";
import type { SessionRun } from "../agent/session-run.ts";
import { sameJson } from "../internal/json.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { byOf } from "../lifecycle/access.ts";
import type { SessionManager } from "../lifecycle/session-manager.ts";
import {
  SessionCapacityError,
  SessionError,
  SessionNotFoundError,
  SessionSuspendedError,
  show,
} from "../session/errors.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import type { Payer } from "../session/payer.ts";
import type { Content } from "../session/message.ts";
import { requestIdOf } from "../session/log/open-runs.ts";
import type { Session } from "../session/value/session.ts";
import type { SessionState } from "../session/state/state.ts";
import { Transcript } from "../session/value/transcript.ts";
import { sessionOf } from "../tree/read-session.ts";
import type { SessionTree } from "../tree/session-tree.ts";
import { isExecuting } from "./group-agent.ts";
import { endDraft, questionDraft, reasonOf } from "./group-drafts.ts";
import type { GroupEvent } from "./group-event.ts";
import type { GroupOutcome, RecordedEvent } from "../session/log/run-event.ts";
import { GroupLog } from "./group-log.ts";
import type { GroupState } from "../session/log/group-state.ts";
import { newRun } from "../session/log/run-fold.ts";
import type { GroupRun } from "./group-run.ts";
import type { CheckedGroupOptions } from "./group-options.ts";
import { takeSession } from "./take-session.ts";
import { type GroupParts, takeTurns, viewOf } from "./turns/take-turns.ts";

/** The options of a new group run. */
export interface GroupStart {
  readonly manager: SessionManager;
  readonly parts: GroupParts;
  readonly sessionId: string;
  /** The message to answer; null to continue with the last one. */
  readonly message: Content | null;
  readonly options: CheckedGroupOptions;
}

/** A group's run in progress; the constructor starts it. */
export class RunningGroup implements GroupRun {
  readonly id: string;
  readonly sessionId: string;
  readonly #start: GroupStart;
  readonly #controller = new AbortController();
  readonly #deadline: RunDeadline;
  readonly #events: EventLog<GroupEvent>;
  readonly #done: Promise<SessionState>;
  #log: GroupLog | null = null;
  #current: SessionRun | null = null;
  #outcome: GroupOutcome | null = null;
  #pending = true;
  #abandoned = false;

  constructor(start: GroupStart) {
    const { sessionId, options } = start;
    this.id = options.runId ?? uuidv7();
    this.sessionId = sessionId;
    this.#start = start;
    this.#events = new EventLog<GroupEvent>({
      runId: this.id,
      listener: options.onEvent,
      report: (error) => process.emitWarning(`A listener of group run ${this.id} failed: ${describeThrown(error)}`),
      position: () => (this.#log?.version ?? 0) - 1,
    });
    setMaxListeners(0, this.#controller.signal);
    this.#deadline = new RunDeadline(options.deadline, (error) => this.#controller.abort(error));
    this.#done = this.#run(options.signal);
    const ended = this.#done.then(
      () => {},
      () => {},
    );
    trackRun({ id: this.id, ended, abandon: () => this.#abandon(ended) });
  }

  get pending(): boolean {
    return this.#pending;
  }

  get outcome(): GroupOutcome | null {
    return this.#outcome;
  }

  // biome-ignore lint/suspicious/noThenProperty: a run is awaited like a promise.
  then<A = SessionState, B = never>(
    fulfilled?: ((state: SessionState) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#done.then(fulfilled, rejected);
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<SessionState | B> {
    return this.#done.catch(rejected);
  }

  finally(ended?: (() => void) | null): Promise<SessionState> {
    return this.#done.finally(ended);
  }

  listen(listener: EventListener<GroupEvent>): () => void {
    return this.#events.listen(listener);
  }

  [Symbol.asyncIterator](): AsyncIterator<GroupEvent> {
    return this.#events[Symbol.asyncIterator]();
  }

  abort(reason?: unknown): void {
    const cause = reason === undefined ? undefined : { cause: reason };
    this.#controller.abort(new SessionError("ABORTED", `Group run ${this.id} was aborted.`, cause));
  }

  async approve(questionOrCallId: string): Promise<void> {
    await this.#agentAtWork().approve(questionOrCallId);
  }

  async deny(questionOrCallId: string, reason?: string): Promise<void> {
    await this.#agentAtWork().deny(questionOrCallId, reason);
  }

  async #run(callersSignal: AbortSignal | null): Promise<SessionState> {
    const unfollow = callersSignal === null ? null : followAbort(callersSignal, () => this.abort(callersSignal.reason));
    // The caller gets the run before its first event, so it can listen from the beginning.
    await null;
    try {
      const outcome = await this.#perform();
      const state = await this.#state();
      this.#outcome = outcome;
      this.#pending = false;
      this.#events.add({ type: "group-finished", outcome }, "recorded");
      return state;
    } catch (error) {
      this.#pending = false;
      const source = this.#log?.run.end == null ? "repeated" : "recorded";
      this.#events.add({ type: "group-failed", error: runErrorOf(error) }, source);
      throw error;
    } finally {
      unfollow?.();
      this.#deadline.stop();
      this.#events.end();
    }
  }

  async #perform(): Promise<GroupOutcome> {
    const { manager, sessionId, options } = this.#start;
    const { waitMs } = options;
    const { signal } = this.#controller;
    signal.throwIfAborted();
    // Fails immediately, without waiting, if the session accepts no turns or is not visible to the caller.
    let tree = await this.#open();
    const known = tree.head.openRuns.some(({ runId }) => runId === this.id);
    if (!known && options.runId !== undefined) await this.#checkNew(tree);
    const access = new StoreAccess({
      store: manager.store,
      sessionId,
      append: manager.store.append.bind(manager.store, sessionId),
      acquire: () =>
        takeSession(manager.store, sessionId, this.id, {
          waitMs,
          signal,
          hold: {
            onLost: (error) => this.#controller.abort(error),
            ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
          },
        }),
      head: async () => {
        tree = await this.#open();
        return tree.refresh();
      },
    });
    // Changes by others to a recorded run are conflicts from here on.
    const version = known ? tree.head.version : undefined;
    return claimRun(access, { runId: this.id, version }, async (claim) => {
      const { openRuns, version: now } = claim.head;
      // A run that continues is folded from its first entry, which precedes its message.
      const from = openRuns.find(({ runId }) => runId === this.id)?.first ?? now;
      const onEvent = (event: RecordedEvent, seq: number): void => {
        // Events recorded before this claim were emitted by earlier claims; the end is emitted once the session is
        // released.
        if (seq >= now && !isLast(event)) this.#events.add(event as Unsigned<GroupEvent>, "recorded");
      };
      const onLost = (): void => access.lease?.lose();
      const log = await GroupLog.open({ tree, guard: access.guard, run: newRun(this.id), from, onLost, onEvent });
      this.#log = log;
      const follower = new LogFollower(manager.store, sessionId, now, (entry) => this.#receive(entry));
      const unsubscribe = follower.subscribe();
      const outcome = await this.#work(tree, log, claim).finally(unsubscribe);
      if (outcome.reason !== "agent-failed") this.#emitEnd(log);
      await access.release();
      return outcome;
    });
  }

  /** @throws {SessionError} `CONFLICT` for a run that was requested and has already ended. */
  async #checkNew(tree: SessionTree): Promise<void> {
    if ((await tree.getEntry(requestIdOf(this.id))) === null) return;
    throw new SessionError("CONFLICT", `Run ${show(this.id)} of session ${tree.id} has ended; use another runId.`);
  }

  async #work(tree: SessionTree, log: GroupLog, claim: Claim): Promise<GroupOutcome> {
    const { place: placed = (session) => session } = this.#start.options;
    const place = placed(sessionOf(tree.head, Transcript.empty));
    await using _held = await this.#holdPlace(place);
    await this.#begin(tree, log, claim);
    this.#deadline.start();
    try {
      this.#deadline.check();
      this.#controller.signal.throwIfAborted();
      const { messageId, ended } = log.progress as GroupState;
      log.answer(messageId);
      if (ended !== null) {
        await log.note([this.#fact("finished")]);
        return { reason: ended };
      }
      const outcome = await this.#takeTurns(log, place, await this.#payerIn(tree));
      if (outcome.reason === "agent-failed") {
        await log.note([{ ...this.#fact("failed"), error: reasonOf(outcome.error.cause) }]);
      } else await log.append([endDraft(outcome.reason), this.#fact("finished")]);
      return outcome;
    } catch (error) {
      const phase = this.#controller.signal.aborted && !this.#deadline.isOver ? "cancelled" : "failed";
      // If the end cannot be recorded, the group is left as after a crash and can continue from there.
      if (!this.#abandoned) await log.note([{ ...this.#fact(phase), error: reasonOf(error) }]).catch(() => {});
      throw error;
    }
  }

  #receive(entry: Entry): void {
    if (isAddressedTo(this.id, entry, (this.#log as GroupLog).header) && entry.type === "cancel")
      this.abort(entry.reason ?? "It was cancelled.");
  }

  /** Tells the turn manager that the group has finished, once that is recorded. */
  #emitEnd(log: GroupLog): void {
    const { parts, sessionId, options } = this.#start;
    const view = viewOf(parts, { log, maxRounds: options.maxRounds, signal: this.#controller.signal });
    parts.turnManager.recordProgress?.(sessionId, view, true);
  }

  /** The user who requested the group pays for it, else the owner of its session. */
  async #payerIn(tree: SessionTree): Promise<Payer | null> {
    const { manager, sessionId, options } = this.#start;
    const by = (await readRequest(manager.store, sessionId, this.id))?.by ?? byOf(options.actor).by;
    return manager.budgets?.payerIn(tree.head, by) ?? null;
  }

  #takeTurns(log: GroupLog, place: Session, payer: Payer | null): Promise<GroupOutcome> {
    const { parts, sessionId, options } = this.#start;
    const { maxRounds, agentTimeoutMs: timeoutMs, ask, waiting } = options;
    return takeTurns(parts, {
      sessionId,
      runId: this.id,
      log,
      place,
      timeoutMs,
      ask,
      waiting,
      isFollowed: () => this.#events.subscribed,
      payer,
      maxRounds,
      signal: this.#controller.signal,
      emit: (event) => this.#events.add(event),
      atWork: (run) => {
        this.#current = run;
      },
    });
  }

  /** Records the message, unless it is already recorded, and the start of the run. */
  async #begin(tree: SessionTree, log: GroupLog, { condition, ends, started, request, isFirst }: Claim): Promise<void> {
    const { sessionId, options, parts } = this.#start;
    const { turnId } = options;
    const message = request?.input ?? this.#start.message;
    const { by } = request ?? byOf(options.actor);
    const agents = [...parts.seats.keys()];
    const startOn = (messageId: string, before: number): EntryDraft => ({
      ...started,
      group: { messageId, agents },
      ...(isFirst ? { before } : {}),
    });
    const repeated = turnId === undefined ? null : await tree.getEntry(turnId);
    if (message !== null && repeated === null) {
      await this.#checkRoom(log, { condition, ends, request });
      const question = questionDraft(message, { ...options, maxRounds: options.maxRounds ?? 10 });
      const drafts = [by === undefined ? question : { ...question, by }, ...ends];
      await log.append([...drafts, startOn(question.id, drafts.length)], condition.guard);
      return;
    }
    if (log.progress === null) {
      throw new SessionError(
        "INVALID_OPTION",
        `Session ${sessionId} has no message for a group to answer; run the group with one.`,
      );
    }
    if (repeated !== null && message !== null) {
      const same = repeated.type === "message" && sameJson(repeated.message.content, message);
      if (!same || log.progress.messageId !== turnId) throw taken(sessionId, turnId as string);
    }
    await log.append([...ends, startOn(log.progress.messageId, ends.length)], condition.guard);
  }

  /**
   * A group adds an answer to its message. Without room for both, the message is not stored; a requested run, which could
   * never start, ends.
   *
   * @throws {SessionCapacityError}
   */
  async #checkRoom(log: GroupLog, { condition, ends, request }: Pick<Claim, "condition" | "ends" | "request">) {
    const { room } = log;
    if (room === null || room.left >= 2) return;
    const error = new SessionCapacityError("turns in a session", room.limit);
    const end = { ...this.#fact("failed"), error: reasonOf(error) };
    if (request !== null) await log.append([...ends, end], condition.guard);
    throw error;
  }

  async #holdPlace(place: Session): Promise<AsyncDisposable | null> {
    const loops = [...this.#start.parts.seats.values()].some(({ agent }) => !isExecuting(agent));
    return place.sandboxBackend !== null && loops ? place.hold() : null;
  }

  /** Opens the session for writing. A suspended session stays suspended, although opening alone would resume it. */
  async #open(): Promise<SessionTree> {
    const { manager, sessionId, options } = this.#start;
    const state = await manager.getState(sessionId, { ...options.actor, turns: false });
    if (state?.status === "suspended") throw new SessionSuspendedError(sessionId);
    return manager.open(sessionId, options.actor);
  }

  async #state(): Promise<SessionState> {
    const { manager, sessionId, options } = this.#start;
    const state = await manager.getState(sessionId, { ...options.actor, turns: options.turns });
    if (state === null) throw new SessionNotFoundError(sessionId);
    return state;
  }

  #fact(phase: "finished" | "failed" | "cancelled"): Extract<EntryDraft, { type: "run" }> {
    return { type: "run", runId: this.id, phase };
  }

  #agentAtWork(): SessionRun {
    if (this.#current !== null) return this.#current;
    throw new SessionError("RUN_ENDED", `No agent of group run ${this.id} waits for anything.`);
  }

  async #abandon(ended: Promise<void>): Promise<void> {
    this.#abandoned = true;
    this.abort("The process is about to end.");
    await ended;
  }
}

function isLast({ type }: RecordedEvent): boolean {
  return type === "group-finished" || type === "group-failed";
}

function taken(sessionId: string, turnId: string): SessionError {
  return new SessionError(
    "ENTRY_EXISTS",
    `Session ${sessionId} holds entry ${turnId} already, and it is not the message that a group answers now; use another turnId.`,
  );
}
