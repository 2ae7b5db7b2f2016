import { copySession } from "../../stores/copy-session.ts";
import { copyStore, type StoreCopy } from "../../stores/copy-store.ts";
import { openStore, SessionError, type SessionStore } from "../../index.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../command.ts";
import { openExistingStore } from "../open-existing-store.ts";

/** Copies sessions from one store to another. */
export const copy: Command = {
  summary: "Copy sessions to another store; run it again to go on where it ended.",
  usage: "copy --from URL --to URL [--session ID]… [--deleted] [--concurrency N] [--json]",
  help: [
    "--from URL         the store to copy from: jsonl:./directory, sqlite:./file.db, or the URL of a server",
    "--to URL           the store to copy to; made if it is not there",
    "--session ID       copy only this session; may be given several times",
    "--deleted          also copy deleted sessions, as deleted ones",
    "--concurrency N    how many sessions to copy at a time (default 4)",
    "--json             print the result as JSON",
  ],
  options: {
    from: { type: "string" },
    to: { type: "string" },
    session: { type: "string", multiple: true },
    deleted: { type: "boolean", default: false },
    concurrency: { type: "string", default: "4" },
    json: { type: "boolean", default: false },
  },
  async run(context) {
    const { values, fail } = context;
    const [source, target] = [textOption(values, "from"), textOption(values, "to")];
    if (source === undefined || target === undefined || source === target || context.positionals.length > 0) {
      fail("copy needs --from and --to with the URLs of two stores, and nothing else.");
      return 2;
    }
    await using from = await openExistingStore(source);
    await using to = await openStore(target);
    const sessions = textsOption(values, "session");
    const result = sessions.length > 0 ? await copyEach(from, to, sessions, context) : await copyAll(from, to, context);
    const failures = result.failures.map(({ sessionId, error }) => ({
      sessionId,
      code: error.code,
      message: error.message,
    }));
    if (values["json"] === true) context.printJson({ ...result, failures });
    else {
      for (const { sessionId, message } of failures) context.print(`not copied: ${sessionId ?? ""}: ${message}`);
      context.print(
        `${result.sessions} sessions are the same in both stores; ${result.entriesWritten} entries were written.`,
      );
    }
    return failures.length === 0 ? 0 : 1;
  },
};

async function copyAll(from: SessionStore, to: SessionStore, context: CommandContext): Promise<StoreCopy> {
  const { values, signal, progress } = context;
  return copyStore(from, to, {
    signal,
    includeDeleted: values["deleted"] === true,
    concurrency: Number(values["concurrency"]),
    onProgress: ({ sessionsDone, sessionsTotal }) => progress(`${sessionsDone} of ${sessionsTotal} sessions copied`),
  });
}

async function copyEach(
  from: SessionStore,
  to: SessionStore,
  sessions: readonly string[],
  { signal, progress }: CommandContext,
): Promise<StoreCopy> {
  const total = { sessions: 0, entriesWritten: 0, checkpoints: 0, forked: 0 };
  const failures: { readonly sessionId: string; readonly error: SessionError }[] = [];
  for (const id of new Set(sessions)) {
    try {
      const copied = await copySession(from, to, id, {
        signal,
        onProgress: ({ version, versionTotal }) => progress(`${id}: ${version} of ${versionTotal} entries copied`),
      });
      total.sessions += 1;
      total.entriesWritten += copied.appended;
      total.checkpoints += copied.checkpoints;
      total.forked += copied.forked ? 1 : 0;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SessionError)) throw error;
      failures.push({ sessionId: id, error });
    }
  }
  return { ...total, failures };
}
