import type { SessionHead } from "../../session/log/fold.ts";
import type { Session } from "../../session/value/session.ts";
import { NO_SETTINGS } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { readTranscript } from "../../tree/read-session.ts";
import { headerOf } from "../../tree/session-writer.ts";
import type { OpenedSink, SinkRequest } from "./run-sink.ts";
import { LogSink } from "./log-sink.ts";
import { commonRows, continueLog, storeLog } from "./run-log.ts";
import { rowDrafts, startDrafts, startedFirst } from "./start-drafts.ts";

/** Keeps a run as a new session of a store: a fork by reference where the store holds its beginning, else from scratch. */
export async function openStoreSink(store: SessionStore, request: SinkRequest): Promise<OpenedSink> {
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
  const start = startDrafts(startedFirst(runId), systemPrompt, NO_SETTINGS);
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
