import { checkOptionsOf } from "../session/check-arguments.ts";
import type { SessionTurn } from "../session/state/state.ts";
import type { Checkpoint } from "../session/store.ts";
import { isThenable } from "../agent/is-thenable.ts";
import { type ReportFailure, warnOfFailure } from "./report-failure.ts";

/** What each event tells beside its type, the session, its user and the time. */
export interface SessionEventDetails {
  readonly created: object;
  readonly resumed: object;
  readonly suspended: object;
  readonly turnAdded: { readonly turn: SessionTurn };
  /** `automatic` for one that the manager made by itself, after so many turns. */
  readonly checkpointCreated: { readonly checkpoint: Checkpoint; readonly automatic: boolean };
  readonly restored: { readonly checkpointId: string };
  /** The session is the one that was forked. */
  readonly forked: { readonly branchId: string; readonly branchName: string };
  /** The session is the one that was merged into, and `appended` how many entries it got. */
  readonly merged: { readonly branchId: string; readonly appended: number };
  /** Also told of a session that expired, with the reason `"expired"`. */
  readonly closed: { readonly durationSeconds: number; readonly reason: string | null };
  /** A run of this manager waits for answers and has let go of the session; each question is the entry that asks. */
  readonly parked: {
    readonly runId: string;
    readonly questions: readonly { readonly callId: string; readonly question: string }[];
  };
  readonly expired: { readonly idleSeconds: number };
}

/** The name of an event. */
export type SessionEventType = keyof SessionEventDetails;

/** Something that happened to a session, told after it was durable. */
export type SessionEvent<T extends SessionEventType = SessionEventType> = {
  [K in T]: {
    readonly type: K;
    readonly sessionId: string;
    readonly userId: string | null;
    /** When it was told, by the manager's clock. */
    readonly at: string;
  } & SessionEventDetails[K];
}[T];

type Listener = (event: SessionEvent) => unknown;

/**
 * Tells listeners what happened to sessions.
 *
 * - Listeners are called in the order in which they were added, after the write, and nobody waits for what they return.
 * - One that throws or rejects is reported; neither the others nor the operation notice.
 */
export class SessionEvents {
  readonly #listeners = new Map<SessionEventType, Set<{ readonly call: Listener }>>();
  readonly #report: ReportFailure;

  /** `onError` is told of listeners that fail (default: a process warning). */
  constructor(options: { readonly onError?: ReportFailure } = {}) {
    checkOptionsOf(options, { onError: true }, "SessionEvents");
    this.#report = options.onError ?? warnOfFailure;
  }

  /** Calls a listener for each event of a type from now on; returns how to end that. */
  on<T extends SessionEventType>(type: T, listener: (event: SessionEvent<T>) => unknown): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    // An object of its own for each call, so that the same function can listen twice and be taken out once.
    const entry = { call: listener as Listener };
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
    };
  }

  /** Tells everyone who listens; never throws. */
  emit<T extends SessionEventType>(event: SessionEvent<T>): void {
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
