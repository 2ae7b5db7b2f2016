import type { AppendInput } from "./append-plan.ts";
import type { Entry, EntryBody, SessionStatus } from "./entry.ts";
import {
  LeaseLostError,
  openRunError,
  SessionBusyError,
  SessionCapacityError,
  SessionClosedError,
  SessionError,
  SessionExpiredError,
  SessionSuspendedError,
  show,
} from "../errors.ts";
import { isOwn, type SessionHead } from "./fold.ts";
import type { OpenRun } from "./open-runs.ts";
import { hasBegun } from "./run-fold.ts";

/** The error for appending turns to a session with this status. */
export function statusError(sessionId: string, status: SessionStatus): SessionError {
  if (status === "suspended") return new SessionSuspendedError(sessionId);
  if (status === "expired") return new SessionExpiredError(sessionId);
  if (status === "closed") return new SessionClosedError(sessionId);
  return new SessionError("TRANSITION", `Session ${sessionId} is active.`);
}

/**
 * Asking for a run again is the same request, unless the existing run belongs to the session from which this one was
 * forked.
 */
export function checkRequests({ header }: SessionHead, existing: readonly (Entry | null)[]): void {
  const taken = existing.find((entry) => entry?.type === "run_request" && !isOwn(header, entry, entry.seq));
  if (taken?.type !== "run_request") return;
  throw new SessionError(
    "CONFLICT",
    `Run ${show(taken.runId)} is not session ${header.id}'s own: it came with a fork or an import; use another runId.`,
  );
}

/** @throws {SessionError} if the append's guard does not hold. */
export function checkGuard({ head, options: { guard }, leaseToken }: AppendInput): void {
  if (guard === undefined) return;
  const allowed = guard.status === undefined ? null : [guard.status].flat();
  if (allowed !== null && !allowed.includes(head.status)) throw statusError(head.header.id, head.status);
  if (guard.leaseToken !== undefined && guard.leaseToken !== leaseToken)
    throw new LeaseLostError(head.header.id, guard.leaseToken);
  if (guard.openRun !== undefined) checkOpenRun(head, guard.openRun);
  const [open] = head.openRuns;
  if (guard.noOpenRun === true && open !== undefined) throw new SessionBusyError(head.header.id, describeOpen(open));
}

/** @throws {SessionError} `CONFLICT` for a run that was cancelled or has ended, which must not be started again. */
function checkOpenRun({ header, openRuns }: SessionHead, runId: string): void {
  const run = openRuns.find((open) => open.runId === runId);
  if (run !== undefined && run.cancelled !== true) return;
  throw new SessionError(
    "CONFLICT",
    `Run ${show(runId)} of session ${header.id} was cancelled or ended meanwhile; start another one.`,
  );
}

/** Names an open run as the holder of a session, for an error message. */
export function describeOpen({ runId, state, questions = [] }: OpenRun): string {
  if (state === "parked") return `run ${runId}, which waits for an answer to ${questions.join(", ")}`;
  return state === "started" ? `run ${runId}` : `run ${runId}, which waits to begin`;
}

/**
 * @throws {SessionError} `SESSION_BUSY` if the entry belongs to a run that has started and the append does not come
 * from the run's holder.
 */
export function checkHolder({ head, drafts, options }: AppendInput, existing: readonly (Entry | null)[]): void {
  const { guard, verbatim } = options;
  const begun = head.openRuns.find(hasBegun);
  if (begun === undefined || verbatim === true) return;
  if (guard?.leaseToken !== undefined || guard?.holds === true) return;
  const taken = drafts.find(({ body }, index) => existing[index] == null && belongsToRun(body));
  if (taken !== undefined) throw openRunError(head.header.id, begun.runId, taken.body);
}

/** Whether only the holder of an open run may append an entry. */
function belongsToRun(body: EntryBody): boolean {
  return body.type === "compaction" || body.type === "prune" || body.type === "context_edit" || isCallOrResult(body);
}

/** Whether an entry is an answer with calls, or the result of a call: while a run is open, both are its own. */
export function isCallOrResult(body: EntryBody): boolean {
  if (body.type !== "message") return false;
  const { message } = body;
  return message.role === "tool" || (message.role === "assistant" && (message.toolCalls?.length ?? 0) > 0);
}

/**
 * Turns that a started run appends do not count towards the limit: the run has checked the room before it asked its model or
 * started its calls, and what was paid for or done is recorded even if others have used up the room since. Its input counts.
 *
 * @throws {SessionCapacityError} if the active path would exceed its maximum number of turns.
 */
export function checkTurns(next: SessionHead, { head, options: { guard, run: runId } }: AppendInput): void {
  if (guard?.maxTurns === undefined || next.messageCount === head.messageCount) return;
  if (head.openRuns.some((run) => run.runId === runId && run.state === "started")) return;
  if (next.path.turnCount > guard.maxTurns) throw new SessionCapacityError("turns in a session", guard.maxTurns);
}
