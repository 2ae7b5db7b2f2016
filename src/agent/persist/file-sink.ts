import { NO_SETTINGS } from "../../session/log/settings.ts";
import { RunFile } from "../../tree/run-file.ts";
import { headerOf } from "../../tree/session-writer.ts";
import type { OpenedSink, RunOutcome, SinkRequest } from "./run-sink.ts";
import { LogSink, type RunHold } from "./log-sink.ts";
import { continueLog, findRows } from "./run-log.ts";
import { rowDrafts, startDrafts, startedFirst } from "./start-drafts.ts";

/** Keeps a run in a file of its own, or goes on with the file of the user session. */
export async function openFileSink(path: string | null, request: SinkRequest): Promise<OpenedSink> {
  const { output, user, runId, sandboxHandleId, systemPrompt } = request;
  const file = await RunFile.open({
    ...(path === null ? {} : { path }),
    header: headerOf(output, sandboxHandleId),
    entries: [...rowDrafts(user.transcript), ...startDrafts(startedFirst(runId), systemPrompt, NO_SETTINGS)],
    // A transcript that comes from the file goes on in it; so does a session under its own name.
    accepts: async (store, head) =>
      head.header.id === user.id || ((await findRows(store, head, user.transcript))?.length ?? 0) > 0,
  });
  const { store, sessionId } = file;
  const append: RunFile["append"] = (drafts, options) => file.append(drafts, options);
  const hold = new FileHold(file);
  const log = { store, sessionId, append, hold: async () => hold, head: () => file.head(), shared: false };
  if (!file.made) return continueLog(log, request);
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
    return phase === "finished" ? this.#file.finish() : this.#file.leave();
  }

  letGo(): Promise<void> {
    return this.#file.leave();
  }
}
