import { EMPTY_PATH, type SessionHead } from "../../session/fold.ts";
import type { Session } from "../../session/session.ts";
import { NO_SETTINGS } from "../../session/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/transcript.ts";
import { readTranscript } from "../../tree/read-session.ts";
import { headerOf } from "../../tree/session-writer.ts";
import type { SinkRequest } from "../run-sink.ts";
import { LeaseHold } from "./lease-hold.ts";
import { LogSink, type LogSinkInit } from "./log-sink.ts";
import { commonRows } from "./run-log.ts";
import { missingRows, rowDrafts, startDrafts } from "./start-drafts.ts";

/** Keeps a run as a new session of a store: a fork by reference where the store holds its beginning, else from scratch. */
export async function openStoreSink(store: SessionStore, request: SinkRequest): Promise<LogSink> {
  const source = await findSource(store, request.user);
  return source === null ? createOutput(store, request) : forkOutput(store, request, source);
}

/** Where a store holds the first rows of a session. */
interface Source {
  readonly head: SessionHead;
  readonly entryId: string;
  readonly length: number;
}

async function createOutput(store: SessionStore, request: SinkRequest): Promise<LogSink> {
  const entries = [...rowDrafts(request.user.transcript), ...startDrafts(request, NO_SETTINGS)];
  const head = await store.create(headerOf(request.output, request.sandboxHandleId), { entries });
  const hold = await LeaseHold.take(store, head.header.id, request.runId, request);
  const { id: sessionId } = head.header;
  return sinkOf(store, {
    sessionId,
    runId: request.runId,
    hold,
    start: { lastId: head.leafId, version: head.version },
  });
}

async function forkOutput(store: SessionStore, request: SinkRequest, source: Source): Promise<LogSink> {
  const { output, runId, sandboxHandleId, user } = request;
  const { header } = source.head;
  const head = await store.fork(header.id, headerOf(output, sandboxHandleId, header), { at: source.entryId });
  const hold = await LeaseHold.take(store, output.id, runId, request);
  try {
    const { onto, drafts } = await missingRows(store, output.id, user.transcript, source);
    const sink = sinkOf(store, { sessionId: output.id, runId, hold, start: { lastId: onto, version: head.version } });
    const path = (onto === null ? null : await store.path(output.id, onto)) ?? EMPTY_PATH;
    const moves = head.leafId === onto ? [] : [{ type: "leaf", targetId: onto } as const];
    const start = [...moves, ...drafts, ...startDrafts(request, await store.settings(output.id, path))];
    await sink.begin(start, { beside: true });
    return sink;
  } catch (error) {
    await hold.letGo().catch(() => {});
    throw error;
  }
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

function sinkOf(store: SessionStore, init: Pick<LogSinkInit, "sessionId" | "runId" | "hold" | "start">): LogSink {
  const { sessionId } = init;
  return new LogSink({
    ...init,
    store,
    append: (drafts, options) => store.append(sessionId, drafts, options),
    read: (options) => store.read(sessionId, options),
  });
}
