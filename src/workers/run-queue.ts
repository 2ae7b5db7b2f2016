import { checkArgument, checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import type { SessionError } from "../session/errors.ts";

/** Options of one notification. */
export interface NotifyOptions {
  /** The name of the agent or group whose run waits; agents and groups share one namespace. */
  readonly runner: string;
  /** When to notify (default: now). */
  readonly at?: Date;
  /** Waiting notifications are delivered in the order of their priority, the lowest first (default 0). */
  readonly priority?: number;
}

/** How a listener handles notifications. */
export interface ListenOptions {
  /** How many notifications are handled at the same time, for all runners together (default 1). */
  readonly concurrency?: number;
  /** How long a notification stays with a listener that has died, before another one gets it (default 30,000 ms). */
  readonly leaseMs?: number;
}

/** Handles a notification for a runner. The signal aborts when the listener is being closed. */
export type NotificationHandler = (sessionId: string, signal: AbortSignal, runner: string) => Promise<void>;

/** A subscription that can be ended. */
export interface Listening {
  /** Takes no more notifications; resolves when the handlers of those that were taken have ended. */
  close(): Promise<void>;
}

/** A listener for notifications. */
export interface QueueListening extends Listening {
  /** Takes no more notifications until `resume` is called, so that other listeners get them; one may still arrive. */
  pause(): void;
  resume(): void;
}

/**
 * Notifies workers that a session has something to do. The runs themselves are in the log: a lost notification delays a run
 * until the next sweep, and no run is lost.
 *
 * - Each notification goes to one listener of its runner; it waits while there is none.
 * - Notifications of one session for one runner are handled one after the other. Further ones are merged into the one that
 *   waits; while one is handled, at most one more waits.
 * - A delayed notification (`at`) replaces the delayed one that the session has.
 * - If a listener dies, another one gets its notification within `leaseMs` plus one second.
 * - A notification whose handler fails is not delivered again.
 * - A published message reaches everyone who has subscribed by then, in the order of each publisher, or is lost.
 */
export interface RunQueue {
  notify(sessionId: string, options: NotifyOptions): Promise<void>;
  listen(runners: readonly string[], handler: NotificationHandler, options?: ListenOptions): Promise<QueueListening>;
  counts(): Promise<QueueCounts>;
  publish(topic: string, data: Uint8Array): Promise<void>;
  subscribe(topic: string, handle: (data: Uint8Array) => void): Promise<Listening>;
  /** Reports failures that no call returns, once for each outage. Returns a function that stops the reports. */
  onError(report: (error: SessionError) => void): () => void;
  /** Ends all listeners and subscriptions; a shared queue keeps the waiting notifications. */
  close(): Promise<void>;
}

/** How many notifications wait for a listener, are being handled, and are delayed. */
export interface QueueCounts {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
}

const NOTIFY: KeysOf<NotifyOptions> = { runner: true, at: true, priority: true };
const LISTEN: KeysOf<ListenOptions> = { concurrency: true, leaseMs: true };

/** @throws {SessionError} `INVALID_OPTION` unless the arguments of `notify` are of their types. */
export function checkNotification(sessionId: string, options: NotifyOptions): void {
  checkArgument(typeof sessionId === "string", sessionId, "notify", "the id of a session");
  checkOptionsOf(options, NOTIFY, "notify");
  const { runner, at } = options;
  checkArgument(typeof runner === "string", runner, "notify", "the name of an agent or a group as runner");
  checkArgument(at === undefined || at instanceof Date, at, "notify", "a date in at");
}

/** @throws {SessionError} `INVALID_OPTION` unless the arguments of `listen` are of their types. */
export function checkListening(runners: readonly string[], handler: NotificationHandler, options: ListenOptions): void {
  checkArgument(Array.isArray(runners), runners, "listen", "a list of the names of agents and groups");
  checkArgument(typeof handler === "function", handler, "listen", "a handler, which is a function");
  checkOptionsOf(options, LISTEN, "listen");
}
