import type { Lineage } from "../session/header.ts";
import type { Content } from "../session/message.ts";
import type { Sandbox } from "../session/sandbox.ts";
import type { Session } from "../session/session.ts";
import type { Transcript } from "../session/transcript.ts";
import type { Approval, RunEvent } from "./run-event.ts";

/**
 * A run that goes on. `await run` gives the finished session; `for await (const event of run)` tells what happens.
 *
 * - A run that fails rejects everyone who awaits it with the same error, and nobody has to.
 * - Every reader of events starts at the beginning, as far as events are kept (the last 10,000 at least).
 * - It can be given to a loop, a compress or an agent in place of a session.
 */
export interface SessionRun extends PromiseLike<Session>, AsyncIterable<RunEvent> {
  /** The id of the session that the run makes. */
  readonly id: string;
  readonly lineage: Lineage;
  readonly sandbox: Sandbox | null;
  /** What was said, as far as the run has come. */
  readonly transcript: Transcript;
  /** Whether the run still goes on. */
  readonly pending: boolean;
  readonly pendingApprovals: readonly Approval[];
  /** The finished session; the same as awaiting the run. */
  synchronize(): Promise<Session>;
  /** Stops the run at once. What was said stays. */
  abort(reason?: unknown): void;
  /** Lets a call that waits for approval run; resolves once that is on record. */
  approve(callId: string): Promise<void>;
  /** Answers a call that waits for approval with a refusal; resolves once that is on record. */
  deny(callId: string, reason?: string): Promise<void>;
  /** Says something before the model's next turn; resolves once it is on record. */
  steer(content: Content): Promise<void>;
  /** Says something when the model would stop; resolves once it is on record. */
  followUp(content: Content): Promise<void>;
}
