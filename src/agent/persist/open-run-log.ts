import { SessionError, show } from "../../session/errors.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { newRun } from "../../session/log/run-fold.ts";
import { NO_SETTINGS } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import type { Session } from "../../session/value/session.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { findSessionFile, isFilePath } from "../../tree/persisted-session.ts";
import { readTranscript } from "../../tree/read-session.ts";
import { RunFile } from "../../tree/run-file.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { headerOf } from "../../tree/session-writer.ts";
import { continueLog } from "./continue-log.ts";
import { LeaseHold } from "./lease-hold.ts";
import { FileAccess, StoreAccess, type StoreAccessInit, UnstoredAccess } from "./log-access.ts";
import { commonRows, findRows } from "./log-position.ts";
import type { LogOpener, LogRequest, Persist } from "./persist-option.ts";
import { resumeStateOf } from "./resume-state.ts";
import { chooseSetup, type SentSetup } from "./run-setup.ts";
import { rowDrafts, settingDrafts, startedFirst } from "./start-drafts.ts";

/**
 * Opens the log of a run and starts the run in it: appends the missing rows of the user session and the start of the
 * run.
 *
 * @throws {SessionBusyError} while another run is in progress in the same session or file; then nothing is written.
 * @throws {SessionError} `CONFLICT` if another process has continued the run to be recovered in the meantime.
 * @throws {SessionError} `SESSION_EXISTS` for a path that has another session, `INVALID_OPTION` for a value that cannot
 * store a run.
 */
export async function openRunLog(persist: Persist, request: LogRequest): Promise<void> {
  if (persist === false) return openUnkept(request);
  if (persist === true) return openFile(null, request);
  if (typeof persist === "string" && persist !== "")
    return openFile(isFilePath(persist) ? persist : await findSessionFile(persist), request);
  if (persist instanceof SessionTree) return openTreeLog(persist, request);
  if (typeof persist === "object" && persist !== null) {
    if (isOpener(persist)) return persist.openLog(request);
    if (isInSession(persist)) return openTreeLog(await SessionTree.on(persist.store, persist.sessionId), request);
    if (isStore(persist)) return openInStore(persist, request);
    if ("fork" in persist && persist.fork === true && isStore(persist.store))
      return openStoreLog(persist.store, request);
  }
  throw new SessionError(
    "INVALID_OPTION",
    `The option persist is ${show(persist)}; it must be true, a path, a store, a tree, or a store with a sessionId or fork: true.`,
  );
}

function isOpener(persist: object): persist is LogOpener {
  return "openLog" in persist && typeof persist.openLog === "function";
}

/** A run that is not stored. */
function openUnkept({ runId, answers, output, user, setup: present, begin }: LogRequest): Promise<void> {
  const lastId = user.transcript.at(-1)?.id ?? null;
  const access = new UnstoredAccess(output.id, lastId);
  const drafts: EntryDraft[] = [startedFirst({ runId, ...(answers && { answers }) }, 0)];
  const setup = present === undefined ? null : { ...present.setup, id: null };
  return begin({ access, state: newRun(runId), from: 0, lastId, atLeaf: true, drafts, append: {}, user, setup });
}

/** The id of the interrupted run, if it is recovered in the same session or file; it keeps this id. */
export function resumedRunId(persist: Persist, transcript: Transcript): string | null {
  const { runId = null, sessionId } = resumeStateOf(transcript) ?? {};
  if (runId === null || typeof persist === "boolean") return null;
  if (typeof persist === "string") return runId;
  if (persist instanceof SessionTree) return persist.id === sessionId ? runId : null;
  if (isInSession(persist)) return persist.sessionId === sessionId ? runId : null;
  return isStore(persist) && isResumedIn(persist, transcript) ? runId : null;
}

/** The stored session of a run, if it is known before the run starts. */
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

/**
 * Continues a session that `resumeSession` read from the store. Of all processes that read it, only the one with the
 * lease can run.
 */
async function openInStore(store: SessionStore, request: LogRequest): Promise<void> {
  const { transcript } = request.user;
  const origin = isResumedIn(store, transcript) ? Transcript.originOf(transcript) : null;
  return origin === null
    ? openStoreLog(store, request)
    : openTreeLog(await SessionTree.on(store, origin.sessionId), request);
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

/** Stores a run in a new file, or continues the file of the user session. */
async function openFile(path: string | null, request: LogRequest): Promise<void> {
  const { output, user, sandboxHandleId } = request;
  const start = startOf(request);
  const file = await RunFile.open({
    ...(path === null ? {} : { path }),
    header: headerOf(output, sandboxHandleId),
    entries: [...rowDrafts(user.transcript), ...start.drafts],
    // A transcript that comes from the file continues in it, and so does a session with the file's id.
    accepts: async (store, head) =>
      head.header.id === user.id || ((await findRows(store, head, user.transcript))?.length ?? 0) > 0,
  });
  const access = new FileAccess(file);
  if (!file.created) return continueLog(access, request);
  try {
    await beginStored(access, request, await access.head(), start);
  } catch (error) {
    await access.release(null).catch(() => {});
    throw error;
  }
}

/** Starts a run whose `started` entry was stored together with its session. */
function beginStored(
  access: FileAccess | StoreAccess,
  { runId, user, begin }: LogRequest,
  { leafId: lastId, version }: SessionHead,
  { drafts, setup }: StoredStart,
): Promise<void> {
  const from = version - drafts.length;
  return begin({ access, state: newRun(runId), from, lastId, atLeaf: true, drafts: [], user, setup });
}

/** The start of a run, stored with its session. */
interface StoredStart {
  readonly drafts: readonly EntryDraft[];
  readonly setup: SentSetup | null;
}

/** The entries of a run in a session created for it: no one else can know the session yet. */
function startOf(request: LogRequest): StoredStart {
  const choice = request.setup === undefined ? null : chooseSetup(request.setup, null, null);
  const settings = [...settingDrafts(request.systemPrompt, NO_SETTINGS), ...(choice?.drafts ?? [])];
  const drafts = [...settings, startedFirst(request, settings.length, choice?.stored.id)];
  return { drafts: drafts.map((draft) => ({ ...draft, run: request.runId })), setup: choice?.sent ?? null };
}

/**
 * Stores a run in a new session of a store: a fork by reference if the store already has its beginning, otherwise from
 * scratch.
 */
async function openStoreLog(store: SessionStore, request: LogRequest): Promise<void> {
  const source = await findSource(store, request.user);
  if (source === null) return createOutput(store, request);
  const { output, sandboxHandleId } = request;
  const { header } = source.head;
  const head = await store.fork(header.id, headerOf(output, sandboxHandleId, header), { at: source.entryId });
  const access = storeAccess(store, output.id, request, { head: async () => head });
  return continueLog(access, request, source);
}

/** A session of a store, held by a lease of the run. */
function storeAccess(
  store: SessionStore,
  sessionId: string,
  request: LogRequest,
  init: Partial<StoreAccessInit> & Pick<StoreAccessInit, "head">,
): StoreAccess {
  return new StoreAccess({
    store,
    sessionId,
    append: store.append.bind(store, sessionId),
    acquire: () => LeaseHold.take(store, sessionId, request.runId, request),
    ...init,
  });
}

/** The position in a store of the first rows of a session. */
interface Source {
  readonly head: SessionHead;
  readonly entryId: string;
  readonly length: number;
}

/** No one else knows a session that is just being created, so creating it is the claim. */
async function createOutput(store: SessionStore, request: LogRequest): Promise<void> {
  const start = startOf(request);
  const entries = [...rowDrafts(request.user.transcript), ...start.drafts];
  const head = await store.create(headerOf(request.output, request.sandboxHandleId), { entries });
  const access = storeAccess(store, head.header.id, request, { head: async () => head });
  await access.acquire();
  try {
    await access.head();
    await beginStored(access, request, head, start);
  } catch (error) {
    await access.release().catch(() => {});
    throw error;
  }
}

/** The stored session from which a user session derives, or the one with the same id and the same first rows. */
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

/** Stores a run in an existing session tree; the tree has its file from then on. */
export async function openTreeLog(tree: SessionTree, request: LogRequest): Promise<void> {
  // Rows of a run are durable one by one, so a session that has no file yet gets it now.
  await tree.flush();
  const access = storeAccess(tree.store, tree.id, request, {
    append: tree.appendAll.bind(tree),
    head: async () => request.head ?? tree.refresh(),
    room: () => tree.room,
    payer: request.payer ?? tree.payer,
  });
  return continueLog(access, request);
}
