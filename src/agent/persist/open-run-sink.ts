import { SessionError, show } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { resumeStateOf } from "./resume-state.ts";
import type { OpenedSink, Persist, SinkRequest, RunOutcome } from "./run-sink.ts";
import { NO_SETTINGS } from "../../session/log/settings.ts";
import { RunFile } from "../../tree/run-file.ts";
import { headerOf } from "../../tree/session-writer.ts";
import { LogSink, type RunHold } from "./log-sink.ts";
import { continueLog, findRows, commonRows, storeLog } from "./run-log.ts";
import { rowDrafts, startDrafts, startedFirst } from "./start-drafts.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { Session } from "../../session/value/session.ts";
import { readTranscript } from "../../tree/read-session.ts";

/**
 * Opens where a run is kept, with the user session's rows in it and a note that the run has started. The run works on
 * the `user` that comes back: where it goes on in a session that said something else, that comes first.
 *
 * @throws {SessionBusyError} while another run goes on in the same session or file; nothing was written then.
 * @throws {SessionError} `CONFLICT` when another has gone on meanwhile with the run that was to be recovered.
 * @throws {SessionError} `SESSION_EXISTS` for a path that holds another session, `INVALID_OPTION` for anything that
 * cannot keep a run.
 */
export async function openRunSink(persist: Persist, request: SinkRequest): Promise<OpenedSink> {
  if (persist === true) return openFileSink(null, request);
  if (typeof persist === "string" && persist !== "") return openFileSink(persist, request);
  if (persist instanceof SessionTree) return openTreeSink(persist, request);
  if (typeof persist === "object" && persist !== null) {
    if ("openSink" in persist && typeof persist.openSink === "function") return persist.openSink(request);
    if (isInSession(persist)) return openTreeSink(await SessionTree.on(persist.store, persist.sessionId), request);
    if (isStore(persist)) return openInStore(persist, request);
    if ("fork" in persist && persist.fork === true && isStore(persist.store))
      return openStoreSink(persist.store, request);
  }
  throw new SessionError(
    "INVALID_OPTION",
    `The option persist is ${show(persist)}; it must be true, a path, a store, a tree, or a store with a sessionId or fork: true.`,
  );
}

/** The run that was interrupted, where it is recovered in the session or file that it was in: it keeps its id. */
export function resumedRunId(persist: Persist, transcript: Transcript): string | null {
  const { runId = null, sessionId } = resumeStateOf(transcript) ?? {};
  if (runId === null || typeof persist === "boolean") return null;
  if (typeof persist === "string") return runId;
  if (persist instanceof SessionTree) return persist.id === sessionId ? runId : null;
  if (isInSession(persist)) return persist.sessionId === sessionId ? runId : null;
  return isStore(persist) && isResumedIn(persist, transcript) ? runId : null;
}

/** The stored session that a run will be kept in, where that is known before it starts. */
export function sessionIdOf(persist: Persist): string | null {
  if (persist instanceof SessionTree) return persist.id;
  return typeof persist === "object" && "sessionId" in persist ? (persist.sessionId ?? null) : null;
}

function isInSession(persist: object): persist is { readonly store: SessionStore; readonly sessionId: string } {
  return "sessionId" in persist && "store" in persist;
}

function isResumedIn(store: SessionStore, transcript: Transcript): boolean {
  const origin = Transcript.originOf(transcript);
  return origin?.store === store && origin.resumedAt !== undefined;
}

/** What `resumeSession` read from the store goes on where it was: of all who read it, the lease lets one run. */
async function openInStore(store: SessionStore, request: SinkRequest): Promise<OpenedSink> {
  const { transcript } = request.user;
  const origin = isResumedIn(store, transcript) ? Transcript.originOf(transcript) : null;
  return origin === null
    ? openStoreSink(store, request)
    : openTreeSink(await SessionTree.on(store, origin.sessionId), request);
}

function isStore(value: object): value is SessionStore {
  return (
    typeof value === "object" &&
    value !== null &&
    "fork" in value &&
    typeof value.fork === "function" &&
    "lease" in value &&
    typeof value.lease === "function"
  );
}

/** Keeps a run in a file of its own, or goes on with the file of the user session. */
async function openFileSink(path: string | null, request: SinkRequest): Promise<OpenedSink> {
  const { output, user, runId, sandboxHandleId, systemPrompt } = request;
  const file = await RunFile.open({
    ...(path === null ? {} : { path }),
    header: headerOf(output, sandboxHandleId),
    entries: [...rowDrafts(user.transcript), ...startDrafts(startedFirst(request), systemPrompt, NO_SETTINGS)],
    // A transcript that comes from the file goes on in it; so does a session under its own name.
    accepts: async (store, head) =>
      head.header.id === user.id || ((await findRows(store, head, user.transcript))?.length ?? 0) > 0,
  });
  const { store, sessionId } = file;
  const append: RunFile["append"] = (drafts, options) => file.append(drafts, options);
  const hold = new FileHold(file);
  const log = { store, sessionId, append, hold: async () => hold, head: () => file.head(), shared: false };
  if (!file.created) return continueLog(log, request);
  const { leafId, version } = await file.head();
  return { sink: new LogSink(log, { runId, hold, start: { lastId: leafId, version } }), user };
}

/** Holds a file, which gets its final name when the run has finished. */
class FileHold implements RunHold {
  readonly guard = null;
  readonly #file: RunFile;

  constructor(file: RunFile) {
    this.#file = file;
  }

  finish(phase: RunOutcome["phase"]): Promise<void> {
    return phase === "finished" ? this.#file.finish() : this.#file.release();
  }

  letGo(): Promise<void> {
    return this.#file.release();
  }
}

/** Keeps a run as a new session of a store: a fork by reference where the store holds its beginning, else from scratch. */
async function openStoreSink(store: SessionStore, request: SinkRequest): Promise<OpenedSink> {
  const source = await findSource(store, request.user);
  if (source === null) return createOutput(store, request);
  const { output, sandboxHandleId } = request;
  const { header } = source.head;
  const head = await store.fork(header.id, headerOf(output, sandboxHandleId, header), { at: source.entryId });
  return continueLog({ ...storeLog(store, output.id, request), head: async () => head }, request, source);
}

/** Where a store holds the first rows of a session. */
interface Source {
  readonly head: SessionHead;
  readonly entryId: string;
  readonly length: number;
}

/** Nobody else knows of a session that is just being made, so that making it is its claim. */
async function createOutput(store: SessionStore, request: SinkRequest): Promise<OpenedSink> {
  const { runId, systemPrompt, user } = request;
  const start = startDrafts(startedFirst(request), systemPrompt, NO_SETTINGS);
  const entries = [...rowDrafts(user.transcript), ...start];
  const { header, leafId, version } = await store.create(headerOf(request.output, request.sandboxHandleId), {
    entries,
  });
  const log = storeLog(store, header.id, request);
  return { sink: new LogSink(log, { runId, hold: await log.hold(), start: { lastId: leafId, version } }), user };
}

/** The store's session that a user session comes from, or that has its id and says what it begins with. */
async function findSource(store: SessionStore, { id, transcript }: Session): Promise<Source | null> {
  const origin = Transcript.originOf(transcript);
  if (origin !== null && origin.store === store) {
    const head = await store.head(origin.sessionId);
    if (head !== null && (await store.path(origin.sessionId, origin.entryId)) !== null) return { ...origin, head };
  }
  const head = await store.head(id);
  if (head === null || head.leafId === null) return null;
  const stored = (await readTranscript(store, head)).transcript;
  const { length } = stored;
  return length > 0 && commonRows(transcript, stored) === length ? { head, entryId: head.leafId, length } : null;
}

/** Keeps a run in a session that goes on, which has its file from then on. */
export async function openTreeSink(tree: SessionTree, request: SinkRequest): Promise<OpenedSink> {
  // Rows of a run are durable one by one, so a session that still waits for its file gets it now.
  await tree.flush();
  const log = {
    ...storeLog(tree.store, tree.id, request),
    append: tree.appendAll.bind(tree),
    head: () => tree.refresh(),
    room: () => tree.room,
  };
  return continueLog(log, request);
}
