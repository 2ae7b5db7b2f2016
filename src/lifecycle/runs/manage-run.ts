import { checkArgument } from "../../session/check-arguments.ts";
import { defined } from "../../internal/defined.ts";
import type { Agent } from "../../agent/agent.ts";
import type { LoopOptions } from "../../agent/loop-options.ts";
import { type WithModelName, withNamedModel } from "../../agent/model/named-model.ts";
import { outputSchema } from "../../agent/output/run-output.ts";
import { openTreeLog } from "../../agent/persist/open-run-log.ts";
import type { LogRequest } from "../../agent/persist/persist-option.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { describeOpen, statusError } from "../../session/log/append-guard.ts";
import { SessionBusyError, SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { inputIdOf } from "../../session/log/open-runs.ts";
import { hasBegun } from "../../session/log/run-fold.ts";
import { messagesAsked, type RequestInput } from "../../session/log/request-messages.ts";
import { checkUserMessages, type RunInput, requestedInput, type RequestedInput } from "../../session/run-input.ts";
import { operation, Session } from "../../session/value/session.ts";
import { rowOf, Transcript } from "../../session/value/transcript.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import { makeWorkspace, namedPath } from "../../stores/named-path.ts";
import { type ActorOptions, byOf } from "../access.ts";
import type { UserBudgets } from "../budgets/user-budgets.ts";
import { placementOf } from "../create-session.ts";
import {
  checkIfBusy,
  type IfBusy,
  type ManagedRuns,
  type ManagedRunsInit,
  type ManagedRunRequest,
} from "./managed-runs.ts";

const WAIT_MS_DEFAULT = 60_000;
/** The longest delay of a timer. */
const WAIT_MS_MAX = 2 ** 31 - 1;
const POLL_FIRST_MS = 20;
const POLL_LAST_MS = 500;

/** Options of a run in a stored session. Options of a loop override the agent's own. */
export interface ManagedRunOptions extends WithModelName<Omit<Partial<LoopOptions>, "persist">>, ActorOptions {
  /**
   * What to do while another run of the session is open: fail with `SESSION_BUSY` (default), wait in the queue, or
   * cancel the running one and wait in the queue.
   */
  readonly ifBusy?: IfBusy;
  /** The longest time to wait for the session (default 60,000). */
  readonly waitMs?: number;
  /**
   * The directory in which the tools act. A new session records it; in an existing session it applies to this run only
   * (default: the session's, otherwise the manager's).
   */
  readonly workspace?: string;
  /** Sets the sandbox placement of the run's input. */
  readonly place?: (input: Session) => Session;
  /** Awaited before the session is looked up. */
  readonly before?: () => Promise<unknown>;
}

/** Options of a run in a new session. */
export interface NewRunOptions extends Omit<ManagedRunOptions, "runId" | "ifBusy" | "waitMs" | "before"> {
  /** The user of the session (default: the actor, otherwise the manager's `userId`). */
  readonly userId?: string;
}

/** The parts of the manager that a run needs. */
export interface ManagedRun extends ManagedRunsInit {
  readonly sessionId: string;
  /** The default directory of tools; null for none. */
  readonly workspace: string | null;
  readonly runs: ManagedRuns;
  readonly budgets: UserBudgets | null;
  /** Opens the session for writing; with its head, if that was just read. */
  readonly open: (head?: SessionHead) => Promise<SessionTree>;
}

/**
 * Runs an agent in a stored session, when its turn in the queue comes.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_TOOL` synchronously; other errors reject the run.
 */
export function manageRun(
  managed: ManagedRun,
  agent: Agent,
  input: RunInput,
  options: ManagedRunOptions,
): SessionRun<undefined, string> {
  const { ifBusy = "reject", waitMs = WAIT_MS_DEFAULT, place = (session) => session, before, ...rest } = options;
  const { actor: _actor, workspace, ...named } = rest;
  checkManagedRunOptions(agent, ifBusy, waitMs);
  checkArgument(typeof place === "function", place, "run", "a function of the session in place");
  checkArgument(before === undefined || typeof before === "function", before, "run", "a function in before");
  const loop = withNamedModel<Omit<Partial<LoopOptions>, "persist">>(named, "run");
  const { runId = uuidv7() } = loop;
  const { sessionId } = managed;
  const said = requestedInput(input);
  const directory = workspace === undefined ? null : namedPath(workspace);
  const openLog = async (request: LogRequest): Promise<void> => {
    await before?.();
    if (directory !== null) await makeWorkspace(directory);
    if (ifBusy === "reject" && loop.runId === undefined) return openAtOnce(managed, request, said, options);
    const asked = { ...requestOf(agent, input, loop), runId, ifBusy };
    return openInTurn(managed, request, asked, { waitMs, ...options });
  };
  const session = inputSession(runId, said);
  const placed = place(directory === null ? session : session.to("local", directory));
  const run = agent.run(placed, { ...loop, runId, persist: { sessionId, openLog } });
  return wakingAfter(managed, run) as SessionRun<undefined, string>;
}

/** The input of a run as a session; its last message has the id derived from the run. */
export function inputSession(runId: string, said: RequestInput): Session {
  const messages = messagesAsked(said);
  const id = inputIdOf(runId);
  const rows = messages.map((message, index) => rowOf({ message, ...(index === messages.length - 1 && { id }) }));
  return Session.of(Transcript.of(rows), { lineage: operation("leaf_user", "createUserSession", []) });
}

/** A log opener that wakes waiting runs of the session when the run ends; the session is released by then. */
export function wakingAfter({ runs, sessionId }: Pick<ManagedRun, "runs" | "sessionId">, run: SessionRun): SessionRun {
  const wake = (): void => runs.released.emit(sessionId);
  void run.synchronize().then(wake, wake);
  return run;
}

/** Starts without a recorded request: a single append, or a refusal. */
async function openAtOnce(
  managed: ManagedRun,
  request: LogRequest,
  said: RequestedInput,
  options: ActorOptions,
): Promise<void> {
  const { sessionId, sessions, open } = managed;
  const head = await sessions.prepare(sessionId, options);
  if (head.status !== "active") throw statusError(sessionId, head.status);
  checkNewInput(head, said);
  aimAtWorkspace(managed, request, head);
  return openTreeLog(await open(), { ...request, ...byOf(options) });
}

/** @throws {SessionError} `INVALID_OPTION` for messages other than users' if the session already has messages. */
function checkNewInput({ header, messageCount }: SessionHead, said: RequestedInput): void {
  if (messageCount > 0 && "messages" in said) checkUserMessages(header.id, said.messages);
}

/** Gives a run the manager's workspace if its session has no sandbox placement. */
function aimAtWorkspace({ workspace }: ManagedRun, { user, output }: LogRequest, { header }: SessionHead): void {
  if (workspace === null || header.sandbox !== null || user.sandboxBackend !== null) return;
  for (const session of [user, output]) Session.aim(session, placementOf(workspace));
}

/** Records the request and starts the run when its turn comes. If the wait times out, the request is withdrawn. */
async function openInTurn(
  managed: ManagedRun,
  request: LogRequest,
  asked: ManagedRunRequest,
  options: ActorOptions & { readonly waitMs: number },
): Promise<void> {
  const { sessionId, runs } = managed;
  const deadlineMs = performance.now() + options.waitMs;
  const { runId, head } = await runs.request(sessionId, asked, options);
  aimAtWorkspace(managed, request, head);
  try {
    return await beginWhenFree(managed, request, head, deadlineMs);
  } catch (error) {
    await runs.withdraw(sessionId, runId, options).catch(() => {});
    throw error;
  }
}

async function beginWhenFree(
  { sessionId, runs, open }: ManagedRun,
  request: LogRequest,
  requested: SessionHead,
  deadlineMs: number,
): Promise<void> {
  const { signal = new AbortController().signal } = request;
  const tree = await open();
  let head = requested;
  checkRepeated(head, request.runId);
  for (let pauseMs = POLL_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_LAST_MS)) {
    checkWaiting(head, request.runId);
    try {
      return await openTreeLog(tree, { ...request, version: head.version });
    } catch (error) {
      const leftMs = deadlineMs - performance.now();
      if (!isTaken(error)) throw error;
      if (leftMs <= 0) throw error instanceof SessionBusyError ? error : new SessionBusyError(sessionId, "another run");
      await runs.released.wait(sessionId, Math.min(pauseMs, leftMs), signal);
    }
    head = await tree.refresh();
  }
}

/** @throws {SessionError} `CONFLICT` for a recorded request whose run has ended. */
function checkRepeated({ header, openRuns }: SessionHead, runId: string): void {
  if (openRuns.some((open) => open.runId === runId)) return;
  throw new SessionError("CONFLICT", `Run ${show(runId)} of session ${header.id} has ended; use another runId.`);
}

/** @throws {SessionError} unless the run still waits to start. */
function checkWaiting({ header, openRuns, status }: SessionHead, runId: string): void {
  const run = openRuns.find((open) => open.runId === runId);
  if (run !== undefined && !hasBegun(run)) return;
  if (run !== undefined) throw new SessionBusyError(header.id, describeOpen(run));
  if (status !== "active") throw statusError(header.id, status);
  throw new SessionError("ABORTED", `Run ${show(runId)} was cancelled before it began.`);
}

/** Whether another process holds the session, or has continued it since it was read. */
function isTaken(error: unknown): boolean {
  return error instanceof SessionError && (error.code === "SESSION_BUSY" || error.code === "CONFLICT");
}

function requestOf(agent: Agent, input: RunInput, loop: Partial<LoopOptions>): ManagedRunRequest {
  const model = loop.model && `${loop.model.provider}/${loop.model.id}`;
  const { deadline, output, outputRetries } = loop;
  // The process that continues the run does not have this schema object, so its JSON Schema is recorded.
  const options = output && { output: outputSchema(output), ...defined({ outputRetries }) };
  return { input, ...defined({ agent: agent.name ?? undefined, model, options, deadline }) };
}

function checkManagedRunOptions(agent: Agent, ifBusy: IfBusy, waitMs: number): void {
  if (typeof agent?.run !== "function") {
    throw new SessionError("INVALID_OPTION", "The agent has no run function; make one with createAgent.");
  }
  checkIfBusy(ifBusy);
  if (!(typeof waitMs === "number" && waitMs >= 0 && waitMs <= WAIT_MS_MAX)) {
    throw new SessionError("INVALID_OPTION", `waitMs is ${show(waitMs)}; give a number from 0 to ${WAIT_MS_MAX}.`);
  }
}
