import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { openFile } from "../../tree/file-trees.ts";
import { findSessionFile, type PersistedOptions } from "../../tree/persisted-session.ts";
import { readSession, readTranscript, withOrigin } from "../../tree/read-session.ts";
import { findRun } from "../../tree/run-file.ts";
import { readResumeState } from "./read-resume-state.ts";
import { setResumeState } from "./resume-state.ts";

/** How the session of a run is read to recover it. */
export interface ResumeOptions extends PersistedOptions {
  /** Instructions for the agent instead of those that were kept. */
  readonly agentPrompt?: string;
}

const RESUME_KEYS: KeysOf<ResumeOptions> = { directory: true, agentPrompt: true };

/** The two sessions that the next loop takes. */
export interface ResumedSession {
  readonly user: Session;
  readonly agent: Session;
}

/**
 * A kept session, by its id or path or in a store, ready for the next loop: with the same identity, its usage, the
 * agent's instructions and the place of its sandbox. A run that stopped between a call and its result goes on there.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const { user, agent } = await resumeSession({ store, sessionId: "the-id-of-a-session" });
 * await runSessionLoop(user, agent, { model: createModel("openai/gpt-5-mini"), persist: store });
 *
 * @throws {SessionBusyError} while a run still goes on in it. In a store on a server (PostgreSQL, Redis), and where the
 * process was on another machine or in another container, a run whose process died holds it for up to half a minute more.
 * @throws {SessionNotFoundError} when there is no such session.
 */
export async function resumeSession(
  source: string | { readonly store: SessionStore; readonly sessionId: string },
  options: ResumeOptions = {},
): Promise<ResumedSession> {
  checkOptionsOf(options, RESUME_KEYS, "resumeSession");
  if (typeof source === "object" && source !== null) {
    checkOptionsOf(source, { store: true, sessionId: true }, "resumeSession");
    checkStoreArgument(source.store, "resumeSession");
    const head = await source.store.head(source.sessionId);
    if (head === null) throw new SessionNotFoundError(source.sessionId);
    return resume(source.store, head, options, { shared: true });
  }
  const path = await findSessionFile(source, options);
  const { backing, head } = await openFile(path, { readOnly: true });
  try {
    const writer = await findRun(path);
    if (writer !== null) throw new SessionBusyError(head.header.id, writer);
    return await resume(backing.store, head, options, { shared: false });
  } finally {
    await backing.close();
  }
}

async function resume(
  store: SessionStore,
  head: SessionHead,
  options: ResumeOptions,
  { shared }: { readonly shared: boolean },
): Promise<ResumedSession> {
  const lease = await store.leaseOf(head.header.id);
  if (lease !== null) throw new SessionBusyError(head.header.id, `run ${lease.runId}`);
  const { transcript: rows, entries } = await readTranscript(store, head);
  const transcript = shared ? withOrigin(rows, store, head, { resumedAt: head.version }) : rows;
  const state = await readResumeState(store, head, transcript, entries);
  // All transcripts without rows are one object, which says nothing about this session.
  if (transcript.length > 0) setResumeState(transcript, state);
  const user = await readSession(store, head, transcript, state.sandbox ?? head.header.sandbox);
  const { systemPrompt } = await store.settings(head.header.id, head.path);
  const prompt = options.agentPrompt ?? systemPrompt;
  // A run without instructions must not send an empty system message.
  const agent = prompt === null || prompt === "" ? Session.create({ kind: "empty" }) : Session.fromAgentPrompt(prompt);
  return { user, agent };
}
