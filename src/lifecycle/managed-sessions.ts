import { defined } from "../internal/defined.ts";
import { listPages } from "../stores/complete/list-pages.ts";
import type { EntryOf, SessionStatus } from "../session/log/entry.ts";
import { SessionCapacityError, SessionError, SessionNotFoundError, SessionTransitionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { turnOf } from "../session/state/state.ts";
import { statusError } from "../session/log/append-guard.ts";
import { SessionStateMachine } from "../session/state/state-machine.ts";
import type { AppendResult, Guard, SessionStore } from "../session/store.ts";
import { type ActorOptions, byOf, isVisible, viewerOf } from "./access.ts";
import type { AfterWrite } from "./after-write.ts";
import type { CheckpointManager } from "./checkpoints/checkpoint-manager.ts";
import { Expiry } from "./expiry.ts";
import { HeadBatcher } from "./head-batcher.ts";
import type { ReportFailure } from "./report-failure.ts";
import type { SessionConfig } from "./session-config.ts";
import type { SessionEvent, SessionEventDetails, SessionEvents, SessionEventType } from "./session-events.ts";

/** Options for looking up a session. */
export interface HeadOptions extends ActorOptions {
  /**
   * True batches all lookups in the same turn of the event loop into one read, as a server does for concurrent requests (default
   * false: reads immediately).
   */
  readonly gather?: boolean;
}

const STATUSES: readonly SessionStatus[] = ["active", "suspended", "closed", "expired"];

/** The parts of `ManagedSessions`. */
export interface ManagedInit {
  readonly store: SessionStore;
  readonly config: SessionConfig;
  readonly events: SessionEvents;
  readonly afterWrite: AfterWrite;
  readonly checkpoints: CheckpointManager;
  readonly report: ReportFailure;
  readonly clock: () => Date;
}

/** The steps that the manager's operations share: finding a session, changing its status, and the work after a write. */
export class ManagedSessions {
  readonly expiry: Expiry;
  readonly #init: ManagedInit;
  readonly #batcher: HeadBatcher;

  constructor(init: ManagedInit) {
    const { store, config, clock } = init;
    this.#init = init;
    this.#batcher = new HeadBatcher(store);
    this.expiry = new Expiry({
      store,
      ttlSeconds: config.sessionTtl,
      clock,
      recorded: (before, after) => this.#expired(before, after),
    });
  }

  /** The guard of an append of turns. */
  get guard(): Guard {
    const { maxTurnsPerSession, variablesBytesMax } = this.#init.config;
    return { status: "active", maxTurns: maxTurnsPerSession, variablesBytesMax };
  }

  /** A session's head as it is recorded; null if it is missing, or hidden from the actor. */
  async find(id: string, options: HeadOptions): Promise<SessionHead | null> {
    const viewer = viewerOf(options);
    try {
      const head = await (options.gather === true ? this.#batcher : this.#init.store).head(id);
      return head !== null && isVisible(head, viewer) ? head : null;
    } catch (error) {
      if (viewer === null || !isUnreadable(error)) throw error;
      // Its user is unknown, so it is hidden from users and reported to the operator.
      this.#init.report(error, { during: "access", sessionId: id });
      return null;
    }
  }

  /** A session's head for a reader. */
  async read(id: string, options: ActorOptions): Promise<SessionHead> {
    const head = await this.find(id, options);
    if (head === null) throw new SessionNotFoundError(id);
    return this.expiry.asSeen(head);
  }

  /**
   * A session's head for a writer: an expiry that is due is recorded first. With `known`, a head that was just read is not read
   * again.
   */
  async prepare(id: string, options: ActorOptions, known?: SessionHead): Promise<SessionHead> {
    const isKnown = known !== undefined && known.header.id === id && isVisible(known, viewerOf(options));
    const head = isKnown ? known : await this.find(id, options);
    if (head === null) throw new SessionNotFoundError(id);
    return this.expiry.expireIfDue(head);
  }

  /** @throws {SessionTransitionError} unless the transition is allowed; of two concurrent attempts, one succeeds. */
  async transition(
    head: SessionHead,
    to: SessionStatus,
    { reason, ...as }: ActorOptions & { readonly reason?: string },
  ): Promise<SessionHead> {
    const { id } = head.header;
    SessionStateMachine.validate(id, head.status, to);
    const status = STATUSES.filter((from) => SessionStateMachine.canTransition(from, to));
    try {
      const draft = { type: "status", status: to, ...defined({ reason }) } as const;
      return (await this.#init.store.append(id, [draft], { guard: { status }, ...byOf(as) })).head;
    } catch (error) {
      const from = statusIn(error);
      throw from === null ? error : new SessionTransitionError(id, from, to);
    }
  }

  /** Makes a suspended session active again. */
  async resume(head: SessionHead, options: ActorOptions): Promise<SessionHead> {
    const { id } = head.header;
    if (head.status === "closed" || head.status === "expired") throw statusError(id, head.status);
    try {
      const resumed = await this.transition(head, "active", options);
      this.announce("resumed", resumed, {});
      return resumed;
    } catch (error) {
      const ended = error instanceof SessionTransitionError && error.from !== "active" ? error.from : null;
      throw ended === null ? error : statusError(id, ended);
    }
  }

  /**
   * Creates a session. If the user has reached the limit, records the expiries of their sessions that are due, and tries again.
   */
  async withRoom<T>(userId: string | null, make: () => Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      const full = error instanceof SessionCapacityError && userId !== null;
      if (!full || !(await this.#expireOf(userId))) throw error;
      return make();
    }
  }

  /** Emits an event to all listeners. */
  announce<T extends SessionEventType>(type: T, head: SessionHead, details: SessionEventDetails[T]): void {
    const { events, clock } = this.#init;
    const { id: sessionId, userId } = head.header;
    const event = { type, sessionId, userId, at: clock().toISOString(), ...details };
    events.emit(Object.freeze(event) as unknown as SessionEvent);
  }

  /** The work after entries are durable: events, memory, checkpoints. */
  async appended({ head, entries }: AppendResult): Promise<void> {
    for (const entry of entries) {
      if (entry.type === "run_parked")
        this.announce("parked", head, { runId: entry.runId, questions: entry.questions });
    }
    const messages = entries.filter((entry): entry is EntryOf<"message"> => entry.type === "message");
    for (const entry of messages) {
      const turn = turnOf(entry);
      this.#init.afterWrite.remember(head, turn);
      this.announce("turnAdded", head, { turn });
    }
    // A turn below another node than the leaf is not on the counted path.
    if (entries.some(({ id }) => id === head.leafId)) await this.#checkpointAfter(head, messages.length);
  }

  /** The work after a session has ended. */
  ended(head: SessionHead, end: SessionEventDetails["closed"]): void {
    this.announce("closed", head, end);
    if (this.#init.config.consolidateOnClose) this.#init.afterWrite.consolidate(head);
  }

  /** The duration of a session up to a time. */
  durationSeconds({ header }: SessionHead, until: Date): number {
    return Math.max(0, until.getTime() - Date.parse(header.createdAt)) / 1000;
  }

  /** Records all expiries of a user's sessions that are due; false if there were none. */
  async #expireOf(userId: string): Promise<boolean> {
    let due = false;
    for await (const { items } of listPages(this.#init.store, { userId, status: ["active", "suspended"] })) {
      for (const head of items.filter((item) => this.expiry.isDue(item))) {
        due = true;
        await this.expiry.record(head);
      }
    }
    return due;
  }

  #expired(before: SessionHead, after: SessionHead): void {
    const last = new Date(before.updatedAt);
    const idleSeconds = Math.max(0, this.#init.clock().getTime() - last.getTime()) / 1000;
    this.announce("expired", after, { idleSeconds });
    this.ended(after, { durationSeconds: this.durationSeconds(before, last), reason: "expired" });
  }

  /**
   * Makes a checkpoint after every `autoCheckpointInterval` turns. Concurrent appends of turns have different counts, so exactly
   * one of them reaches the interval.
   */
  async #checkpointAfter(head: SessionHead, added: number): Promise<void> {
    const { config, checkpoints, report } = this.#init;
    const interval = config.autoCheckpointInterval ?? 0;
    const { turnCount } = head.path;
    if (interval === 0 || Math.floor(turnCount / interval) === Math.floor((turnCount - added) / interval)) return;
    try {
      const checkpoint = await checkpoints.create(head.header.id, { head });
      this.announce("checkpointCreated", head, { checkpoint, automatic: true });
    } catch (error) {
      report(error, { during: "auto-checkpoint", sessionId: head.header.id });
    }
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof SessionError && ["DAMAGED", "NOT_A_SESSION", "UNSUPPORTED_VERSION"].includes(error.code);
}

/** The status for which an append was refused, or null if it was refused for another reason. */
function statusIn(error: unknown): SessionStatus | null {
  switch (error instanceof SessionError ? error.code : null) {
    case "TRANSITION":
      return "active";
    case "SESSION_SUSPENDED":
      return "suspended";
    case "SESSION_CLOSED":
      return "closed";
    case "SESSION_EXPIRED":
      return "expired";
    default:
      return null;
  }
}
