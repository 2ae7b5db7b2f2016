import { endOf, hostElsewhere, readRequest } from "../../agent/persist/claim-run.ts";
import { readStart } from "../../agent/persist/read-start.ts";
import type { EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { answerIdOf, type OpenRun } from "../../session/log/open-runs.ts";
import { hasBegun, isExpired, nextRun } from "../../session/log/run-fold.ts";
import type { SessionStore } from "../../session/store.ts";
import type { ActorOptions } from "../access.ts";
import type { ManagedRunsInit } from "./managed-runs.ts";

const TRIES_MAX = 20;

/** The reason recorded for a question that expired. */
const UNANSWERED = "Nobody answered in time.";

/** A run that no process holds and that can start or continue now. */
export interface DueRun {
  readonly run: OpenRun;
  /** The request for it; null for a run that started without one. */
  readonly request: EntryOf<"run_request"> | null;
  /** The name of the agent that was requested or that last answered in it; null if the log names none. */
  readonly agent: string | null;
  /** The head of the session when the run was found. */
  readonly head: SessionHead;
}

/**
 * The run of a session that can start or continue now; null if there is none, or if a process holds the session. First
 * records what is overdue: the end of cancelled runs whose process has died, and the denial of expired questions.
 */
export async function findDueRun(
  init: ManagedRunsInit,
  sessionId: string,
  options: ActorOptions,
): Promise<DueRun | null> {
  const { store, sessions, clock } = init;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const head = await sessions.prepare(sessionId, options);
    const { openRuns, status } = head;
    if (openRuns.length === 0 || (await store.leaseOf(sessionId)) !== null) return null;
    const ended = status === "closed" || status === "expired";
    const over = openRuns.filter(({ state, cancelled }) => state === "started" && (ended || cancelled === true));
    const now = clock().toISOString();
    const run = nextRun(openRuns, now);
    if (over.length > 0) await record(store, head, over.map(endOf));
    else if (run === null || status !== "active") return null;
    else if (isExpired(run, now)) await record(store, head, await denialsOf(store, head, run));
    else if ((await hostElsewhere(store, sessionId, run)) !== null) return null;
    else {
      const request = await readRequest(store, sessionId, run.runId);
      return { run, request, agent: await agentOf(store, head, run, request), head };
    }
  }
  return null;
}

/** The name of the agent that was requested for a run, or that last answered in it; null if the log names none. */
export async function agentOf(
  store: SessionStore,
  head: SessionHead,
  run: OpenRun,
  request: EntryOf<"run_request"> | null,
): Promise<string | null> {
  if (request?.agent !== undefined) return request.agent;
  return hasBegun(run) ? ((await readStart(store, head, run.runId))?.agent ?? null) : null;
}

/** If another process appended first, the next look shows what is left to do. */
async function record(store: SessionStore, { header, version }: SessionHead, drafts: EntryDraft[]): Promise<void> {
  try {
    await store.append(header.id, drafts, { expectedVersion: version });
  } catch (error) {
    if (!(error instanceof SessionConflictError)) throw error;
  }
}

async function denialsOf(store: SessionStore, { header }: SessionHead, run: OpenRun): Promise<EntryDraft[]> {
  const decision = { approved: false, reason: UNANSWERED };
  const denials: EntryDraft[] = [];
  for (const question of run.questions ?? []) {
    const entry = await store.getEntry(header.id, question);
    if (entry?.type !== "approval")
      throw new SessionError("QUESTION_NOT_FOUND", `Session ${header.id} lost ${question}.`);
    const { runId, callId } = entry;
    const given = await store.getEntry(header.id, answerIdOf(question));
    // Earlier versions let other entries use the id of an answer; such a question can never be answered.
    if (given !== null && given.type !== "approval") return [{ type: "cancel", runId, reason: UNANSWERED }];
    denials.push({ type: "approval", id: answerIdOf(question), runId, callId, question, decision });
  }
  return denials;
}
