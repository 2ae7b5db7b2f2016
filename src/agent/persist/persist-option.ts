import type { FactBody } from "../../session/log/entry.ts";
import type { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { Payer } from "../../session/payer.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Session } from "../../session/value/session.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import type { RunBeginning } from "./run-log.ts";
import type { PresentSetup } from "./run-setup.ts";

/**
 * Where a run is stored.
 *
 * - `true` or a path: a new file, in the default directory or at the path.
 * - A store: a session that `resumeSession` read from it is continued in place. Any other becomes a new session, forked
 *   by reference if the store already has its beginning.
 * - A store with `fork: true`: always a new session. Open calls are answered there as interrupted, and the original run
 *   is not changed.
 * - A tree, or a session of a store: that session is continued after its existing messages.
 */
export type Persist =
  | boolean
  | string
  | SessionStore
  | SessionTree
  | { readonly store: SessionStore; readonly sessionId: string }
  | { readonly store: SessionStore; readonly fork: true }
  | LogOpener;

/**
 * Opens the log of a run when the run starts; used by the manager, recovery and groups. If it throws, the run fails
 * with that error.
 */
export interface LogOpener {
  /** The session in which the run will be stored, if it is known in advance. */
  readonly sessionId?: string;
  openLog(request: LogRequest): Promise<void>;
}

/** The agent, model and tools of a run, as its start records them. */
export type RunAgent = Pick<Extract<FactBody, { type: "run" }>, "agent" | "model" | "tools">;

/** Options for opening the log of a run. */
export interface LogRequest {
  readonly runId: string;
  /** The agent that answers; absent if the start does not record it. */
  readonly answers?: RunAgent;
  /** The version of the log that the caller knew; if others changed a run since then, that is a conflict. */
  readonly version?: number;
  /**
   * The head of the log, if the caller just read it: the claim starts from it, and is a conflict if the log has grown
   * since.
   */
  readonly head?: SessionHead;
  /** The session that the run produces. */
  readonly output: Session;
  /** The session from which the run started; its rows are written first, unless they are already stored. */
  readonly user: Session;
  /** The agent's instructions, stored as a setting for the process that continues; absent if their text must not be stored. */
  readonly systemPrompt?: string | null;
  /** The setup of the agent's requests; absent if the run records no setup. */
  readonly setup?: PresentSetup;
  /** The user who wrote the rows of `user`, the run's input, if no recorded request names them. */
  readonly by?: string;
  /** The payer of the run (default: the payer of the tree's session). */
  readonly payer?: Payer | null;
  /** The handle to record for the sandbox instead of its own id. */
  readonly sandboxHandleId?: string;
  /** Aborted when the run must stop. */
  readonly signal?: AbortSignal;
  /** The duration of the lease (default 30,000). */
  readonly leaseMs?: number;
  /** Called when another process has the session: the run must stop and can write nothing more. */
  readonly onLost?: (error: SessionError) => void;
  /** Called once the start is recorded. If it returns false, the run releases its session and is due again. */
  readonly mayBegin?: () => Promise<boolean>;
  /** Starts the run in its log; if it throws, the session is released. */
  readonly begin: (beginning: RunBeginning) => Promise<void>;
}
