import type { Agent } from "../agent/agent.ts";
import type { LoopOptions } from "../agent/loop-options.ts";
import { openTreeSink } from "../agent/persist/tree-sink.ts";
import type { OpenedSink, SinkRequest } from "../agent/run-sink.ts";
import type { SessionRun } from "../agent/session-run.ts";
import { untilAborted } from "../agent/until-aborted.ts";
import { SessionBusyError, SessionError, show } from "../session/errors.ts";
import type { Content } from "../session/message.ts";
import type { SessionTree } from "../tree/session-tree.ts";
import type { ActorOptions } from "./access.ts";
import type { Entrant, IfBusy, RunLine } from "./run-line.ts";

const WAIT_MS_DEFAULT = 60_000;
/** The longest time that a timer can wait. */
const WAIT_MS_MAX = 2 ** 31 - 1;
const POLL_FIRST_MS = 20;
const POLL_LAST_MS = 500;

/** How a session is run through an agent. What a loop takes goes before the agent's own. */
export interface ManagedRunOptions extends Omit<Partial<LoopOptions>, "persist">, ActorOptions {
  /**
   * What to do while another run has the session: fail with `SESSION_BUSY` (default), wait for its end, or stop it. A run
   * that another process has cannot be stopped from here: it is waited for.
   */
  readonly ifBusy?: IfBusy;
  /** How long to wait for the session at most (default 60,000). */
  readonly waitMs?: number;
}

/** What a managed run needs of its manager. */
export interface ManagedRun {
  readonly sessionId: string;
  readonly line: RunLine;
  /** Refuses with the error of the session's status, or when it is not there for the caller. */
  readonly check: () => Promise<void>;
  /** The session, opened for writing. */
  readonly open: () => Promise<SessionTree>;
}

/**
 * Runs a stored session through an agent, as soon as it is free.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` at the call; everything else is how the run fails.
 */
export function manageRun(managed: ManagedRun, agent: Agent, input: Content, options: ManagedRunOptions): SessionRun {
  const { actor: _actor, ifBusy = "reject", waitMs = WAIT_MS_DEFAULT, ...loop } = options;
  checkOptions(agent, ifBusy, waitMs);
  const run: SessionRun = agent.run(input, {
    ...loop,
    persist: { openSink: (request) => openManagedSink(managed, request, { ifBusy, waitMs, run: () => run }) },
  });
  return run;
}

interface Entering {
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  readonly run: () => SessionRun;
}

async function openManagedSink(
  { sessionId, line, check, open }: ManagedRun,
  request: SinkRequest,
  { ifBusy, waitMs, run }: Entering,
): Promise<OpenedSink> {
  const { runId, signal = new AbortController().signal } = request;
  const entrant: Entrant = {
    runId,
    ifBusy,
    waitMs,
    signal,
    interrupt: () => run().abort("Another run takes its place."),
  };
  const deadlineMs = performance.now() + waitMs;
  // Checked before the line, which would tell whoever is not to know of the session that it is busy.
  await line.enter(sessionId, entrant, check);
  try {
    const opened = await openWhenFree(await open(), request, ifBusy === "reject" ? null : { deadlineMs, signal });
    // The lease is let go of before a run ends, so that the next one finds the session free.
    const leave = (): void => line.leave(sessionId, entrant);
    void run().synchronize().then(leave, leave);
    return opened;
  } catch (error) {
    line.leave(sessionId, entrant);
    throw error;
  }
}

/** Takes the session's lease; where another process has it, looks again until the deadline. */
async function openWhenFree(
  tree: SessionTree,
  request: SinkRequest,
  wait: { readonly deadlineMs: number; readonly signal: AbortSignal } | null,
): Promise<OpenedSink> {
  for (let pauseMs = POLL_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_LAST_MS)) {
    try {
      return await openTreeSink(tree, request);
    } catch (error) {
      if (wait === null || !(error instanceof SessionBusyError)) throw error;
      const leftMs = wait.deadlineMs - performance.now();
      if (leftMs <= 0) throw error;
      await pause(Math.min(pauseMs, leftMs), wait.signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    await untilAborted(
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      }),
      signal,
    );
  } finally {
    clearTimeout(timer);
  }
}

function checkOptions(agent: Agent, ifBusy: IfBusy, waitMs: number): void {
  if (typeof agent?.run !== "function") {
    throw new SessionError("INVALID_OPTION", "The agent has no run function; make one with createAgent.");
  }
  if (!["reject", "enqueue", "interrupt"].includes(ifBusy)) {
    throw new SessionError("INVALID_OPTION", `ifBusy is ${show(ifBusy)}; give "reject", "enqueue" or "interrupt".`);
  }
  if (!(typeof waitMs === "number" && waitMs >= 0 && waitMs <= WAIT_MS_MAX)) {
    throw new SessionError("INVALID_OPTION", `waitMs is ${show(waitMs)}; give a number from 0 to ${WAIT_MS_MAX}.`);
  }
}
