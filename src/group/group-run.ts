import type { EventListener } from "../agent/event-log.ts";
import type { SessionState } from "../session/state/state.ts";
import type { GroupEvent } from "./group-event.ts";
import type { GroupOutcome } from "../session/log/run-event.ts";

/**
 * A group's run in progress. `await run` returns the session's final state; `for await (const event of run)` yields its
 * events.
 *
 * - If an agent fails, the run ends and still returns the state; `outcome` names the agent and the error.
 * - If the run is stopped, or the session or the store fails, every `await` rejects with the same error. A run need not
 *   be awaited. Its messages are kept in either case, and the group can continue from there.
 * - Every reader of events starts at the beginning, as far as events are kept (the last 10,000 at least).
 */
export interface GroupRun extends PromiseLike<SessionState>, AsyncIterable<GroupEvent> {
  /** The run's id in the log. */
  readonly id: string;
  readonly sessionId: string;
  /** Whether the run is still in progress. */
  readonly pending: boolean;
  /** How the group ended; null before that, and for a failed run. */
  readonly outcome: GroupOutcome | null;
  /**
   * Calls the listener with all events so far and then with each new one synchronously, with the position of the log as
   * far as the group knows it.
   */
  listen(listener: EventListener<GroupEvent>): () => void;
  /** Handles the failure of the run, like `catch` of a promise. */
  readonly catch: Promise<SessionState>["catch"];
  /** Calls a function when the run has ended, like `finally` of a promise. */
  readonly finally: Promise<SessionState>["finally"];
  /** Stops the run immediately. */
  abort(reason?: unknown): void;
  /** Approves a call of the agent that is running. */
  approve(questionOrCallId: string): Promise<void>;
  /** Denies a call of the agent that is running. */
  deny(questionOrCallId: string, reason?: string): Promise<void>;
}
