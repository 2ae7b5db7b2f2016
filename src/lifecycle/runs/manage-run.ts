import { defined } from "../../internal/defined.ts";
import type { Agent } from "../../agent/agent.ts";
import type { LoopOptions } from "../../agent/loop-options.ts";
import { openTreeSink } from "../../agent/persist/open-run-sink.ts";
import type { OpenedSink, SinkRequest } from "../../agent/persist/run-sink.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { describeOpen, statusError } from "../../session/log/append-guard.ts";
import { SessionBusyError, SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { Content } from "../../session/message.ts";
import { inputIdOf } from "../../session/log/open-runs.ts";
import { operation, Session } from "../../session/value/session.ts";
import { rowOf, Transcript } from "../../session/value/transcript.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import { type ActorOptions, byOf } from "../access.ts";
import {
  checkIfBusy,
  type IfBusy,
  type ManagedRuns,
  type ManagedRunsInit,
  type ManagedRunRequest,
} from "./managed-runs.ts";

const WAIT_MS_DEFAULT = 60_000;
/** The longest time that a timer can wait. */
const WAIT_MS_MAX = 2 ** 31 - 1;
const POLL_FIRST_MS = 20;
const POLL_LAST_MS = 500;

/** How a session is run through an agent. What a loop takes goes before the agent's own. */
export interface ManagedRunOptions extends Omit<Partial<LoopOptions>, "persist">, ActorOptions {
  /**
   * What to do while another run of the session is open: fail with `SESSION_BUSY` (default), wait for its turn, or stop the
   * one that has begun and wait for its turn.
   */
  readonly ifBusy?: IfBusy;
  /** How long to wait for the session at most (default 60,000). */
  readonly waitMs?: number;
  /** Gives what the run begins with another place for its tools. */
  readonly place?: (input: Session) => Session;
  /** Waited for before the session is looked for. */
  readonly before?: () => Promise<unknown>;
}

/** What a managed run needs of its manager. */
export interface ManagedRun extends ManagedRunsInit {
  readonly sessionId: string;
  readonly runs: ManagedRuns;
  /** The session, opened for writing. */
  readonly open: () => Promise<SessionTree>;
}

/**
 * Runs a stored session through an agent, as soon as it is its turn.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` at the call; everything else is how the run fails.
 */
export function manageRun(managed: ManagedRun, agent: Agent, input: Content, options: ManagedRunOptions): SessionRun {
  const { ifBusy = "reject", waitMs = WAIT_MS_DEFAULT, place = (session) => session, before, ...rest } = options;
  const { actor: _actor, ...loop } = rest;
  checkOptions(agent, ifBusy, waitMs);
  const { runId = uuidv7() } = loop;
  const openSink = async (request: SinkRequest): Promise<OpenedSink> => {
    await before?.();
    if (ifBusy === "reject" && loop.runId === undefined) return openAtOnce(managed, request, options);
    const asked = { ...requestOf(agent, input, loop), runId, ifBusy };
    return openInTurn(managed, request, asked, { waitMs, ...options });
  };
  return ringingAfter(managed, agent.run(place(inputSession(runId, input)), { ...loop, runId, persist: { openSink } }));
}

/** What a run begins with: what a person says, if anything, under the id that belongs to the run. */
export function inputSession(runId: string, content: Content): Session {
  const silent = typeof content !== "string" && content.length === 0;
  const row = rowOf({ id: inputIdOf(runId), message: { role: "user", content } });
  return Session.of(Transcript.of(silent ? [] : [row]), { lineage: operation("leaf_user", "createUserSession", []) });
}

/** A run at whose end those are woken that wait for its session; it has let go of it by then. */
export function ringingAfter({ runs, sessionId }: Pick<ManagedRun, "runs" | "sessionId">, run: SessionRun): SessionRun {
  const ring = (): void => runs.bell.ring(sessionId);
  void run.synchronize().then(ring, ring);
  return run;
}

/** Begins without a request on record: one append, or a refusal. */
async function openAtOnce(managed: ManagedRun, request: SinkRequest, options: ActorOptions): Promise<OpenedSink> {
  const { sessionId, sessions, open } = managed;
  const { status } = await sessions.prepare(sessionId, options);
  if (status !== "active") throw statusError(sessionId, status);
  return openTreeSink(await open(), { ...request, ...byOf(options) });
}

/** Puts the request on record and begins when it is its turn. A request that has waited in vain is taken back. */
async function openInTurn(
  managed: ManagedRun,
  request: SinkRequest,
  asked: ManagedRunRequest,
  options: ActorOptions & { readonly waitMs: number },
): Promise<OpenedSink> {
  const { sessionId, runs } = managed;
  const deadlineMs = performance.now() + options.waitMs;
  const { runId, head } = await runs.request(sessionId, asked, options);
  try {
    return await beginWhenFree(managed, request, head, deadlineMs);
  } catch (error) {
    await runs.withdraw(sessionId, runId, options).catch(() => {});
    throw error;
  }
}

async function beginWhenFree(
  { sessionId, runs, open }: ManagedRun,
  request: SinkRequest,
  requested: SessionHead,
  deadlineMs: number,
): Promise<OpenedSink> {
  const { signal = new AbortController().signal } = request;
  const tree = await open();
  let head = requested;
  checkRepeated(head, request.runId);
  for (let pauseMs = POLL_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_LAST_MS)) {
    checkWaiting(head, request.runId);
    try {
      return await openTreeSink(tree, { ...request, version: head.version });
    } catch (error) {
      const leftMs = deadlineMs - performance.now();
      if (!isTaken(error)) throw error;
      if (leftMs <= 0) throw error instanceof SessionBusyError ? error : new SessionBusyError(sessionId, "another run");
      await runs.bell.wait(sessionId, Math.min(pauseMs, leftMs), signal);
    }
    head = await tree.refresh();
  }
}

/** @throws {SessionError} `CONFLICT` for a request that is on record from before and whose run is over. */
function checkRepeated({ header, openRuns }: SessionHead, runId: string): void {
  if (openRuns.some((open) => open.runId === runId)) return;
  throw new SessionError("CONFLICT", `Run ${show(runId)} of session ${header.id} is over; use another runId.`);
}

/** @throws {SessionError} unless the run still waits to begin. */
function checkWaiting({ header, openRuns, status }: SessionHead, runId: string): void {
  const run = openRuns.find((open) => open.runId === runId);
  if (run?.state === "requested") return;
  if (run !== undefined) throw new SessionBusyError(header.id, describeOpen(run));
  if (status !== "active") throw statusError(header.id, status);
  throw new SessionError("ABORTED", `Run ${show(runId)} was cancelled before it began.`);
}

/** Whether someone else has the session, or went on in it since it was looked at. */
function isTaken(error: unknown): boolean {
  return error instanceof SessionError && (error.code === "SESSION_BUSY" || error.code === "CONFLICT");
}

function requestOf(agent: Agent, input: Content, loop: Partial<LoopOptions>): ManagedRunRequest {
  const model = loop.model && `${loop.model.provider}/${loop.model.id}`;
  return { input, ...defined({ agent: agent.name ?? undefined, model, deadline: loop.deadline }) };
}

function checkOptions(agent: Agent, ifBusy: IfBusy, waitMs: number): void {
  if (typeof agent?.run !== "function") {
    throw new SessionError("INVALID_OPTION", "The agent has no run function; make one with createAgent.");
  }
  checkIfBusy(ifBusy);
  if (!(typeof waitMs === "number" && waitMs >= 0 && waitMs <= WAIT_MS_MAX)) {
    throw new SessionError("INVALID_OPTION", `waitMs is ${show(waitMs)}; give a number from 0 to ${WAIT_MS_MAX}.`);
  }
}
