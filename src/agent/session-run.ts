import type { Lineage } from "../session/log/header.ts";
import type { Content } from "../session/message.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import type { RunResult } from "../session/value/run-result.ts";
import type { Session } from "../session/value/session.ts";
import type { Transcript } from "../session/value/transcript.ts";
import type { EventListener } from "./event-log.ts";
import type { RunEvent } from "./run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import type { ValueOf, ValueSchema } from "./schema/value-schema.ts";

/** How a run stands. */
export type RunStatus = "running" | "parked" | "finished" | "failed" | "aborted";

/** The schema of the value that a run is to end with; undefined where it is to end with none. */
export type OutputSchema = ValueSchema | undefined;

/**
 * The session that a run comes to: what was said, the stored session that it was kept in (`sessionId`), and whether it has
 * finished or waits for answers to its `questions`; with the value, where the run was asked for one by a schema.
 */
export type Answer<S, Id extends string | null = string | null> = Session &
  RunResult & { readonly sessionId: Id } & ([S] extends [ValueSchema] ? { readonly output: ValueOf<S> } : unknown);

/**
 * A run that goes on. `await run` gives the finished session, or that of a parked run as far as it came; `for await (const
 * event of run)` tells what happens.
 *
 * - A run that fails rejects everyone who awaits it with the same error, and nobody has to.
 * - Every reader of events starts at the beginning, as far as events are kept (the last 10,000 at least).
 * - It can be given to a loop, a compress or an agent instead of a session.
 */
export interface SessionRun<S = undefined, Id extends string | null = string | null>
  extends PromiseLike<Answer<S, Id>>,
    AsyncIterable<RunEvent> {
  /** The id of the session value that the run makes. */
  readonly id: string;
  /** The stored session that the run is kept in; null where it is kept in none, or before that is known. */
  readonly sessionId: Id;
  /** The id that the log has the run under; one that is recovered keeps it. */
  readonly runId: string;
  /** How it stands. A parked one has let go of its session and goes on when its questions are answered and it is recovered. */
  readonly status: RunStatus;
  /** Resolves once the run has its session, where it is kept; rejects where it failed before. */
  readonly admitted: Promise<void>;
  readonly lineage: Lineage;
  readonly sandbox: Sandbox | null;
  /** What was said, as far as the run has come. */
  readonly transcript: Transcript;
  /** Whether the run still goes on. */
  readonly pending: boolean;
  readonly pendingApprovals: readonly Approval[];
  /**
   * Calls the listener with each event so far and then with each new one synchronously, with the position of the run's last entry
   * in its log (-1 before the first) and whether the log records the event; the returned function ends that.
   */
  listen(listener: EventListener<RunEvent>): () => void;
  /** The finished session; the same as awaiting the run. */
  synchronize(): Promise<Answer<S, Id>>;
  /** Stops the run at once. What was said stays. */
  abort(reason?: unknown): void;
  /** Lets a call that waits for approval run, by its question or its own id; resolves once that is on record. */
  approve(questionOrCallId: string): Promise<void>;
  /** Answers a call that waits for approval with a refusal; resolves once that is on record. */
  deny(questionOrCallId: string, reason?: string): Promise<void>;
  /** Says something before the model's next turn; resolves once it is on record. */
  steer(content: Content): Promise<void>;
  /** Says something when the model would stop; resolves once it is on record. */
  followUp(content: Content): Promise<void>;
}
