import { EMPTY_PATH, type SessionHead } from "../../session/fold.ts";
import type { Session } from "../../session/session.ts";
import { NO_SETTINGS } from "../../session/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/transcript.ts";
import { readTranscript } from "../../tree/read-session.ts";
import { headerOf } from "../../tree/session-writer.ts";
import type { SinkRequest } from "../run-sink.ts";
import { type Claimable, claimRun } from "./claim-run.ts";
import { LeaseHold } from "./lease-hold.ts";
import { LogSink, type LogSinkInit } from "./log-sink.ts";
import { commonRows } from "./run-log.ts";
import { missingRows, rowDrafts, startDrafts, startedFirst } from "./start-drafts.ts";

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

/** Nobody else knows of a session that is just being made, so that making it is its claim. */
async function createOutput(store: SessionStore, request: SinkRequest): Promise<LogSink> {
  const { runId, systemPrompt, user } = request;
  const start = startDrafts(startedFirst(runId), systemPrompt, NO_SETTINGS);
  const entries = [...rowDrafts(user.transcript), ...start];
  const { header, leafId, version } = await store.create(headerOf(request.output, request.sandboxHandleId), {
    entries,
  });
  const hold = await LeaseHold.take(store, header.id, runId, request);
  return sinkOf(store, { sessionId: header.id, runId, hold, start: { lastId: leafId, version } });
}

async function forkOutput(store: SessionStore, request: SinkRequest, source: Source): Promise<LogSink> {
  const { output, runId, sandboxHandleId, systemPrompt, user } = request;
  const { id: sessionId } = output;
  const { header } = source.head;
  const fork = await store.fork(header.id, headerOf(output, sandboxHandleId, header), { at: source.entryId });
  const place: Claimable = {
    store,
    append: (drafts, options) => store.append(sessionId, drafts, options),
    hold: () => LeaseHold.take(store, sessionId, runId, request),
    head: async () => fork,
  };
  return claimRun(place, { runId }, async ({ head, hold, started }) => {
    const { onto, drafts } = await missingRows(store, sessionId, user.transcript, source);
    const sink = sinkOf(store, { sessionId, runId, hold, start: { lastId: onto, version: head.version } });
    const path = (onto === null ? null : await store.path(sessionId, onto)) ?? EMPTY_PATH;
    const moves = head.leafId === onto ? [] : [{ type: "leaf", targetId: onto } as const];
    const start = startDrafts(started, systemPrompt, await store.settings(sessionId, path));
    await sink.begin([...moves, ...drafts, ...start], { beside: true });
    return sink;
  });
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
  const append: LogSinkInit["append"] = (drafts, options) => store.append(init.sessionId, drafts, options);
  return new LogSink({ ...init, store, append, shared: true });
}
