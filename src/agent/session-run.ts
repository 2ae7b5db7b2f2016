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

/** The status of a run. */
export type RunStatus = "running" | "parked" | "finished" | "failed" | "aborted";

/** The schema of a run's structured output; undefined if it has none. */
export type OutputSchema = ValueSchema | undefined;

/**
 * The result of a run: a session with its messages, the stored session's id (`sessionId`), the status, the open
 * `questions`, and the structured output if one was requested.
 */
export type Answer<S, Id extends string | null = string | null> = Session &
  RunResult & { readonly sessionId: Id } & ([S] extends [ValueSchema] ? { readonly output: ValueOf<S> } : unknown);

/**
 * A run in progress. `await run` returns its session, also if the run parked; `for await (const event of run)` yields
 * its events.
 *
 * - A failed run rejects every `await` with the same error. A run need not be awaited.
 * - Every reader of events starts at the beginning, as far as events are kept (the last 10,000 at least).
 * - A loop, a compress or an agent accepts a run in place of a session.
 */
export interface SessionRun<S = undefined, Id extends string | null = string | null>
  extends PromiseLike<Answer<S, Id>>,
    AsyncIterable<RunEvent> {
  /** The id of the session object that the run produces. */
  readonly id: string;
  /** The stored session of the run; null if it is not stored, or before it is known. */
  readonly sessionId: Id;
  /** The run's id in the log; a recovered run keeps it. */
  readonly runId: string;
  /**
   * The status. A parked run has released its session and continues when its questions are answered and it is
   * recovered.
   */
  readonly status: RunStatus;
  /** Resolves once the run holds its session; rejects if it failed before. */
  readonly admitted: Promise<void>;
  readonly lineage: Lineage;
  readonly sandbox: Sandbox | null;
  /** The messages so far. */
  readonly transcript: Transcript;
  /** Whether the run is still in progress. */
  readonly pending: boolean;
  readonly pendingApprovals: readonly Approval[];
  /**
   * Calls the listener with each event so far and then with each new one synchronously, with the position of the run's
   * last entry in its log (-1 before the first) and whether the log records the event. Returns a function that
   * unsubscribes.
   */
  listen(listener: EventListener<RunEvent>): () => void;
  /** Handles the failure of the run, like `catch` of a promise. */
  readonly catch: Promise<Answer<S, Id>>["catch"];
  /** Calls a function when the run has ended or parked, like `finally` of a promise. */
  readonly finally: Promise<Answer<S, Id>>["finally"];
  /** The finished session; the same as awaiting the run. */
  synchronize(): Promise<Answer<S, Id>>;
  /** Stops the run immediately. Its messages are kept. */
  abort(reason?: unknown): void;
  /** Approves a call, by its question's id or its own; resolves once that is recorded. */
  approve(questionOrCallId: string): Promise<void>;
  /** Denies a call; resolves once that is recorded. */
  deny(questionOrCallId: string, reason?: string): Promise<void>;
  /** Adds a message before the model's next turn; resolves once it is recorded. */
  steer(content: Content): Promise<void>;
  /** Adds a message for when the model would stop; resolves once it is recorded. */
  followUp(content: Content): Promise<void>;
}
