import { checkArgument, checkOptionsOf, isObject } from "../session/check-arguments.ts";
import type { SessionTurn } from "../session/state/state.ts";
import type { Checkpoint } from "../session/store.ts";
import { isThenable } from "../agent/is-thenable.ts";
import { type ReportFailure, warnOfFailure } from "./report-failure.ts";

/** The fields of each event beside its type, session, user and time. */
export interface SessionEventDetails {
  readonly created: object;
  readonly resumed: object;
  readonly suspended: object;
  readonly turnAdded: { readonly turn: SessionTurn };
  /** `automatic` is true for a checkpoint of the manager itself, after `autoCheckpointInterval` turns. */
  readonly checkpointCreated: { readonly checkpoint: Checkpoint; readonly automatic: boolean };
  readonly restored: { readonly checkpointId: string };
  /** `sessionId` is the source of the fork. */
  readonly forked: { readonly branchId: string; readonly branchName: string };
  /** `sessionId` is the target of the merge; `appended` is the number of entries appended to it. */
  readonly merged: { readonly branchId: string; readonly appended: number };
  /** Emitted for an expired session as well, with the reason `"expired"`. */
  readonly closed: { readonly durationSeconds: number; readonly reason: string | null };
  /** A run of this manager has parked, which released its session; each question is the id of its entry. */
  readonly parked: {
    readonly runId: string;
    readonly questions: readonly { readonly callId: string; readonly question: string }[];
  };
  readonly expired: { readonly idleSeconds: number };
}

/** The name of an event. */
export type SessionEventType = keyof SessionEventDetails;

/** An event of a session, emitted after it is durable. */
export type SessionEvent<T extends SessionEventType = SessionEventType> = {
  [K in T]: {
    readonly type: K;
    readonly sessionId: string;
    readonly userId: string | null;
    /** When it was emitted, by the manager's clock. */
    readonly at: string;
  } & SessionEventDetails[K];
}[T];

type Listener = (event: SessionEvent) => unknown;

/**
 * An event emitter for session events.
 *
 * - Listeners are called in the order in which they were added, after the write; their promises are not awaited.
 * - An error of a listener is reported, and affects neither other listeners nor the operation.
 */
export class SessionEvents {
  readonly #listeners = new Map<SessionEventType, Set<{ readonly call: Listener }>>();
  readonly #report: ReportFailure;

  /** `onError` is called with errors of listeners (default: a process warning). */
  constructor(options: { readonly onError?: ReportFailure } = {}) {
    checkOptionsOf(options, { onError: true }, "SessionEvents");
    this.#report = options.onError ?? warnOfFailure;
  }

  /** Subscribes a listener to events of a type; returns a function that unsubscribes it. */
  on<T extends SessionEventType>(type: T, listener: (event: SessionEvent<T>) => unknown): () => void {
    checkArgument(typeof listener === "function", listener, "on", "a listener, which is a function");
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    // Wrapped in a new object, so that the same function can be subscribed twice and unsubscribed once.
    const entry = { call: listener as Listener };
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
    };
  }

  /** Calls all listeners. Their errors are reported, and not thrown. */
  emit<T extends SessionEventType>(event: SessionEvent<T>): void {
    checkArgument(isObject(event), event, "emit", "an event");
    const fail = (error: unknown): void => this.#report(error, { during: "listener", sessionId: event.sessionId });
    for (const { call } of [...(this.#listeners.get(event.type) ?? [])]) {
      try {
        const answer = call(event as SessionEvent);
        if (isThenable(answer)) answer.then(undefined, fail);
      } catch (error) {
        fail(error);
      }
    }
  }
}
