import { notifyNext } from "../../../workers/notify-session.ts";
import type { AnswerRequest } from "../../run-wire.ts";
import { checkRight } from "../gate/authenticator.ts";
import type { Caller, ServerServices } from "../server-services.ts";

/** How long a cancel waits for the end of the run. */
const END_MS = 2000;

/**
 * Asks a run to stop, on whichever machine it is, and waits briefly for its end. A run that has ended is not changed.
 */
export async function cancelRun(
  services: ServerServices,
  sessionId: string,
  { runId, reason }: { readonly runId: string; readonly reason?: string | undefined },
  as: { readonly actor: Caller },
): Promise<void> {
  const which = { runId, ...(reason === undefined ? {} : { reason }) };
  if (!(await services.manager.cancel(sessionId, which, as))) return;
  await notifyFree(services, sessionId);
  await untilEnded(services, sessionId, runId);
}

/** Records an answer to a question; returns the id of the run. */
export async function answerQuestion(
  services: ServerServices,
  {
    sessionId,
    question,
    body,
    as,
  }: { sessionId: string; question: string; body: AnswerRequest; as: { actor: Caller } },
): Promise<string> {
  const { manager, store } = services;
  const { approve, reason, note } = body;
  const words = { ...(reason === undefined ? {} : { reason }), ...(note === undefined ? {} : { note }) };
  await (approve ? manager.approve(sessionId, question, words, as) : manager.deny(sessionId, question, words, as));
  await notifyFree(services, sessionId);
  const asked = await store.getEntry(sessionId, question);
  return asked?.type === "approval" ? asked.runId : "";
}

/** An answer with its question. */
export interface QuestionAnswer extends AnswerRequest {
  readonly question: string;
}

/** Records several answers; returns the id of the run that asked the last question. @throws {HttpError} `FORBIDDEN`. */
export async function answerQuestions(
  services: ServerServices,
  { sessionId, answers, as }: { sessionId: string; answers: readonly QuestionAnswer[]; as: { actor: Caller } },
): Promise<string> {
  checkRight(as.actor, "approve");
  let runId = "";
  for (const { question, ...body } of answers) {
    runId = await answerQuestion(services, { sessionId, question, body, as });
  }
  return runId;
}

/** Notifies the queue about a session that no process holds. A process that holds it sees the entry in the log. */
async function notifyFree({ store, queue, report }: ServerServices, sessionId: string): Promise<void> {
  if ((await store.leaseOf(sessionId)) !== null) return;
  await notifyNext({ store, queue, leaseMs: 0 }, sessionId).catch(report);
}

/** Waits briefly for the end of a run that was asked to stop. */
async function untilEnded({ store }: ServerServices, sessionId: string, runId: string): Promise<void> {
  const head = await store.head(sessionId);
  if (head?.openRuns.some((run) => run.runId === runId) !== true) return;
  const watch = store.watch(sessionId, { after: head.version - 1, signal: AbortSignal.timeout(END_MS) });
  for await (const entry of watch) if (entry.type === "run" && entry.runId === runId) return;
}
