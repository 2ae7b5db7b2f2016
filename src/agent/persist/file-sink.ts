import type { Session } from "../../session/session.ts";
import { NO_SETTINGS } from "../../session/settings.ts";
import { RunFile } from "../../tree/run-file.ts";
import { headerOf } from "../../tree/session-writer.ts";
import type { RunOutcome, SinkRequest } from "../run-sink.ts";
import { LogSink, type RunHold } from "./log-sink.ts";
import { continueLog, findRows } from "./run-log.ts";
import { rowDrafts, startDrafts } from "./start-drafts.ts";

/** Keeps a run in a file of its own, or goes on with the file of the user session. */
export async function openFileSink(
  path: string | null,
  request: SinkRequest,
): Promise<{ sink: LogSink; user: Session }> {
  const { output, user, runId, sandboxHandleId } = request;
  const file = await RunFile.open({
    ...(path === null ? {} : { path }),
    header: headerOf(output, sandboxHandleId),
    entries: [...rowDrafts(user.transcript), ...startDrafts(request, NO_SETTINGS)],
    // A transcript that comes from the file goes on in it; so does a session under its own name.
    accepts: async (store, head) =>
      head.header.id === user.id || ((await findRows(store, head, user.transcript))?.length ?? 0) > 0,
  });
  try {
    const { sessionId } = file;
    const head = await file.head();
    const append: RunFile["append"] = (drafts, options) => file.append(drafts, options);
    const hold = new FileHold(file);
    if (!file.made) return await continueLog({ store: file.store, head, append, hold, shared: false }, request);
    const start = { lastId: head.leafId, version: head.version };
    const read: RunFile["read"] = (options) => file.read(options);
    return { sink: new LogSink({ sessionId, runId, append, read, hold, start, store: null }), user };
  } catch (error) {
    await file.leave();
    throw error;
  }
}

/** Holds a file, which gets its final name when the run has finished. */
class FileHold implements RunHold {
  readonly guard = null;
  readonly #file: RunFile;

  constructor(file: RunFile) {
    this.#file = file;
  }

  finish(phase: RunOutcome["phase"]): Promise<void> {
    return phase === "finished" ? this.#file.finish() : this.#file.leave();
  }

  letGo(): Promise<void> {
    return this.#file.leave();
  }
}
