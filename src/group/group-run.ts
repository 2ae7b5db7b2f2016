import type { EventListener } from "../agent/event-log.ts";
import type { SessionState } from "../session/state/state.ts";
import type { GroupEvent } from "./group-event.ts";
import type { GroupOutcome } from "../session/log/run-event.ts";

/**
 * A group at work. `await run` gives the session's final state; `for await (const event of run)` tells what happens.
 *
 * - An agent that fails ends the run, which then still gives the state; `outcome` says which one and why.
 * - A run that is stopped, or that the session or the store refuses to go on, rejects everyone who awaits it with the
 *   same error, and nobody has to. What was said stays in either case, and the group can go on from there.
 * - Every reader of events starts at the beginning, as far as events are kept (the last 10,000 at least).
 */
export interface GroupRun extends PromiseLike<SessionState>, AsyncIterable<GroupEvent> {
  /** The id under which the log holds when the run started and ended. */
  readonly id: string;
  readonly sessionId: string;
  /** Whether the run still goes on. */
  readonly pending: boolean;
  /** How the group came to its end; null before that, and for a run that failed. */
  readonly outcome: GroupOutcome | null;
  /** Tells what happened and what happens, each event at once, with the position of the log as far as the group knows it. */
  listen(listener: EventListener<GroupEvent>): () => void;
  /** Stops the run at once. */
  abort(reason?: unknown): void;
  /** Lets a call of the agent at work run that waits for approval. */
  approve(questionOrCallId: string): Promise<void>;
  /** Answers a call of the agent at work that waits for approval with a refusal. */
  deny(questionOrCallId: string, reason?: string): Promise<void>;
}
