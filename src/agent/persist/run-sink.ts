import type { JsonValue } from "../../internal/json.ts";
import type { Entry, EntryDraft, EntryOf, FactBody } from "../../session/log/entry.ts";
import type { SandboxPlacement } from "../../session/log/header.ts";
import type { SessionError } from "../../session/errors.ts";
import type { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import type { TranscriptOrigin } from "../../session/value/transcript.ts";
import type { Usage } from "../../session/usage.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";

/**
 * Where a run is kept.
 *
 * - `true` or a path: a file of its own, in the default directory or there.
 * - A store: what `resumeSession` gave of it goes on in its own session. Any other is a new session in it, forked by
 *   reference where the store already holds the beginning.
 * - A store with `fork: true`: a new session in it always. Calls that were open are answered there as interrupted, and the
 *   run that was recovered is not touched.
 * - A tree, or a session of a store: that session itself goes on, after what it already says.
 * - An object that opens the sink itself, when the run starts.
 */
export type Persist =
  | boolean
  | string
  | SessionStore
  | SessionTree
  | { readonly store: SessionStore; readonly sessionId: string }
  | { readonly store: SessionStore; readonly fork: true }
  | SinkOpener;

/** Opens where a run is kept, when the run starts. What it throws is how the run fails. */
export interface SinkOpener {
  /** The session that the sink will be of, where that is known before. */
  readonly sessionId?: string;
  openSink(request: SinkRequest): Promise<OpenedSink>;
}

/** Where a run is kept, and the session that it works on: what that log said before, then the user's. */
export interface OpenedSink {
  readonly sink: RunSink;
  readonly user: Session;
}

/** How a run ended. */
export interface RunOutcome {
  readonly phase: "finished" | "failed" | "cancelled";
  readonly error?: JsonValue;
  readonly usage?: Usage;
  readonly truncated?: boolean;
  /** The value that it was asked for, as the model wrote it. */
  readonly output?: JsonValue;
  /** Where the tools acted, so that whoever recovers the run finds it again. */
  readonly sandbox?: SandboxPlacement;
}

/** The lease that a run holds its session under. */
export interface RunLease {
  /** Of two who ever held the session, the later one has the larger token. */
  readonly token: number;
  /**
   * Null while a third of the lease or more is left by this process's own clock; else resolves once the lease was renewed.
   *
   * @throws {LeaseLostError} when it is another's, or may be by now.
   */
  ensure(): Promise<void> | null;
}

/** What a sink has kept. */
export interface KeptEntries {
  /** The entry of each draft; null for one that this sink does not keep. */
  readonly entries: readonly (Entry | null)[];
  /** What others added to the session since the run's last row, which stands before these (default: nothing). */
  readonly others?: readonly Entry[];
  /** Where the session's leaf is, when someone has moved it away from the run since the run's last row. */
  readonly movedTo?: { readonly leafId: string | null };
}

/** What others may say about a run while it goes on. */
export type HeardFact = EntryOf<"cancel" | "queued" | "approval">;

/** What goes on record when a run parks. */
export type ParkedFact = Omit<Extract<FactBody, { type: "run_parked" }>, "type" | "runId">;

/**
 * Keeps what happens in a run, so that it survives the process. One run writes to it, one call at a time.
 *
 * - Every call resolves once what it was given is durable, and rejects with nothing written.
 * - None of it is refused for want of room, since the run looks at `room` before it asks a model or starts a call.
 * - Entries go where the session is: what others added meanwhile comes before them. Where someone moved the leaf elsewhere,
 *   they follow the run's own last entry.
 */
export interface RunSink {
  /** The session that holds the run. */
  readonly sessionId: string;
  append(drafts: readonly EntryDraft[]): Promise<KeptEntries>;
  /** From here on tells what others say about the run, in order, once each; what the run says itself may be told too. */
  listen?(tell: (fact: HeardFact) => void): void;
  /** Reads now what others have said. */
  look?(): Promise<void>;
  /**
   * Records that the run waits for answers; `abandon` lets go of the session then. False, with nothing written, when others
   * have said something meanwhile, which was told. Left out where a run cannot park.
   */
  park?(fact: ParkedFact): Promise<boolean>;
  /** Whether anyone has subscribed to what the run is a part of, such as a group; left out where that is the run alone. */
  isFollowed?(): boolean;
  /**
   * Records how the run ended and lets go of the session. False, with nothing written, when the run is to count as finished
   * and others have said something meanwhile, which was told.
   */
  end(outcome: RunOutcome): Promise<boolean>;
  /** Lets go without a word, as a crash would: the run can be recovered. */
  abandon(): Promise<void>;
  /** How much room the session had after the last append, and how many turns it may have; null where that is not limited. */
  readonly room: SessionRoom | null;
  /** The version of the session's log as far as the run knows it; left out where that is not known. */
  readonly version?: number;
  /** The lease that the run holds; left out where it holds its log in another way. */
  readonly lease?: RunLease | null;
  /** Where the rows written so far can be built on by reference; null where they cannot. */
  origin(): Omit<TranscriptOrigin, "length"> | null;
}

/** Who answers in a run, as its start records it. */
export type RunAgent = Pick<Extract<FactBody, { type: "run" }>, "agent" | "model" | "tools">;

/** What a sink must know before the first row. */
export interface SinkRequest {
  readonly runId: string;
  /** Who answers; left out where the start does not record it. */
  readonly answers?: RunAgent;
  /** What whoever starts the run knew of the session's log; what others did about a run since then is a conflict. */
  readonly version?: number;
  /** The session that the run makes. */
  readonly output: Session;
  /** The session that it started from; its rows are written first, unless they are there already. */
  readonly user: Session;
  /** The agent's instructions, kept as a setting so that whoever recovers the run has them. */
  readonly systemPrompt: string | null;
  /** Who says the rows of `user`, which are the run's input, where no request on record names them. */
  readonly by?: string;
  /** What to record as the sandbox's handle instead of its own. */
  readonly sandboxHandleId?: string;
  /** Aborts when the run is to stop. */
  readonly signal?: AbortSignal;
  /** How long a lease is taken for at a time (default 30,000). */
  readonly leaseMs?: number;
  /** Told when the session is another's: the run is to stop and can keep nothing more. */
  readonly onLost?: (error: SessionError) => void;
}
