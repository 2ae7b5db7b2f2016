import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { openFile } from "../../tree/file-trees.ts";
import { findSessionFile, type PersistedOptions } from "../../tree/persisted-session.ts";
import { readSession, readTranscript, withOrigin } from "../../tree/read-session.ts";
import { findRun } from "../../tree/run-file.ts";
import { readResumeState } from "./read-resume-state.ts";
import { setGivenPrompt, setResumeState } from "./resume-state.ts";

/** Options for reading the session of a run to recover it. */
export interface ResumeOptions extends PersistedOptions {
  /** Instructions to use instead of the stored ones. */
  readonly agentPrompt?: string;
}

const RESUME_KEYS: KeysOf<ResumeOptions> = { directory: true, agentPrompt: true };

/** The two sessions to pass to the next loop. */
export interface ResumedSession {
  readonly user: Session;
  readonly agent: Session;
}

/**
 * Reads a stored session by id, path or store, ready for the next loop: with the same id, its usage, the agent's
 * instructions and its sandbox placement. A run that stopped between a call and its result continues there.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const { user, agent } = await resumeSession({ store, sessionId: "the-id-of-a-session" });
 * await runSessionLoop(user, agent, { model: createModel("openai/gpt-5-mini"), persist: store });
 *
 * @throws {SessionBusyError} while a run is in progress in it. In a store on a server (PostgreSQL, Redis), or if the
 * process was on another machine or in another container, a run whose process died holds it for up to half a minute
 * longer.
 * @throws {SessionNotFoundError} if the session does not exist.
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
  const passed: Entry[] = [];
  const { transcript: rows, entries } = await readTranscript(store, head, head.leafId, (entry) => passed.push(entry));
  const transcript = shared ? withOrigin(rows, store, head, { resumedAt: head.version }) : rows;
  const state = await readResumeState(store, head, transcript, { entries, passed });
  // All empty transcripts are the same object, which must not carry the state of one session.
  if (transcript.length > 0) setResumeState(transcript, state);
  const user = await readSession(store, head, transcript, state.sandbox ?? head.header.sandbox, passed);
  const { systemPrompt } = await store.settings(head.header.id, head.path);
  const prompt = options.agentPrompt ?? systemPrompt;
  // A run without instructions must not send an empty system message.
  const agent = prompt === null || prompt === "" ? Session.create({ kind: "empty" }) : Session.fromAgentPrompt(prompt);
  if (options.agentPrompt !== undefined) setGivenPrompt(agent);
  return { user, agent };
}
