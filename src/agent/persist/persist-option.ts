import type { FactBody } from "../../session/log/entry.ts";
import type { SessionError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Session } from "../../session/value/session.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import type { RunBeginning } from "./run-log.ts";

/**
 * Where a run is kept.
 *
 * - `true` or a path: a file of its own, in the default directory or there.
 * - A store: what `resumeSession` gave of it goes on in its own session. Any other is a new session in it, forked by
 *   reference where the store already holds the beginning.
 * - A store with `fork: true`: a new session in it always. Calls that were open are answered there as interrupted, and the
 *   run that was recovered is not touched.
 * - A tree, or a session of a store: that session itself goes on, after what it already says.
 */
export type Persist =
  | boolean
  | string
  | SessionStore
  | SessionTree
  | { readonly store: SessionStore; readonly sessionId: string }
  | { readonly store: SessionStore; readonly fork: true }
  | LogOpener;

/** Opens the log of a run when the run starts: the manager, recovery and groups do so. What it throws is how the run fails. */
export interface LogOpener {
  /** The session that the run will be kept in, if that is known before. */
  readonly sessionId?: string;
  openLog(request: LogRequest): Promise<void>;
}

/** Who answers in a run, as its start records it. */
export type RunAgent = Pick<Extract<FactBody, { type: "run" }>, "agent" | "model" | "tools">;

/** What it takes to open the log of a run. */
export interface LogRequest {
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
  /** Called when the session is another's: the run is to stop and can keep nothing more. */
  readonly onLost?: (error: SessionError) => void;
  /** Asked once the start is recorded; with false the run releases its session again, and is due. */
  readonly mayBegin?: () => Promise<boolean>;
  /** Begins the run in its log; what it throws releases the session. */
  readonly begin: (beginning: RunBeginning) => Promise<void>;
}
