import { SessionError, show } from "../../session/errors.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { openFileSink } from "./file-sink.ts";
import { openStoreSink } from "./store-sink.ts";
import { openTreeSink } from "./tree-sink.ts";
import { resumeStateOf } from "./resume-state.ts";
import type { OpenedSink, Persist, SinkRequest } from "./run-sink.ts";

/**
 * Opens where a run is kept, with the user session's rows in it and a note that the run has started. The run works on
 * the `user` that comes back: where it goes on in a session that said something else, that comes first.
 *
 * @throws {SessionBusyError} while another run goes on in the same session or file; nothing was written then.
 * @throws {SessionError} `CONFLICT` when another has gone on meanwhile with the run that was resumed.
 * @throws {SessionError} `SESSION_EXISTS` for a path that holds another session, `INVALID_OPTION` for anything that is no
 * place to keep a run.
 */
export async function openRunSink(persist: Persist, request: SinkRequest): Promise<OpenedSink> {
  if (persist === true) return openFileSink(null, request);
  if (typeof persist === "string" && persist !== "") return openFileSink(persist, request);
  if (persist instanceof SessionTree) return openTreeSink(persist, request);
  if (typeof persist === "object" && persist !== null) {
    if ("openSink" in persist && typeof persist.openSink === "function") return persist.openSink(request);
    if ("sessionId" in persist) return openTreeSink(await SessionTree.on(persist.store, persist.sessionId), request);
    if (isStore(persist)) return openInStore(persist, request);
    if ("fork" in persist && persist.fork === true && isStore(persist.store))
      return openStoreSink(persist.store, request);
  }
  throw new SessionError(
    "INVALID_OPTION",
    `The option persist is ${show(persist)}; it must be true, a path, a store, a tree, or a store with a sessionId or fork: true.`,
  );
}

/** The run that was interrupted, where a resume of its session goes on in the same place: it keeps its id. */
export function resumedRunId(persist: Persist, transcript: Transcript): string | null {
  const { runId = null, sessionId } = resumeStateOf(transcript) ?? {};
  if (runId === null || typeof persist === "boolean") return null;
  if (typeof persist === "string") return runId;
  if (persist instanceof SessionTree) return persist.id === sessionId ? runId : null;
  if ("sessionId" in persist) return persist.sessionId === sessionId ? runId : null;
  return isStore(persist) && isResumedIn(persist, transcript) ? runId : null;
}

function isResumedIn(store: SessionStore, transcript: Transcript): boolean {
  const origin = Transcript.originOf(transcript);
  return origin?.store === store && origin.resumedAt !== undefined;
}

/** What was resumed from the store goes on where it was: of all who resumed it, the lease lets one run. */
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
