import { counted } from "../../terminal.ts";
import { copySession } from "../../../stores/copy/copy-session.ts";
import { copyStore, type StoreCopy } from "../../../stores/copy/copy-store.ts";
import { SessionError, type SessionStore } from "../../../index.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";
import { CREATE_OPTION, TRUST_STORE_OPTION } from "../../parse-command-line.ts";

/** Copies sessions from one store to another. */
export const copy: Command = {
  name: "copy",
  summary: "Copy sessions to another store. Run it again to continue where it stopped.",
  arguments: [],
  options: {
    from: { value: "URL", what: "the store to copy from (default: the default store)" },
    to: { value: "URL", what: "the store to copy to; created if missing" },
    session: { value: "ID", repeated: true, what: "copy only this session" },
    deleted: { what: "also copy deleted sessions; they stay deleted" },
    concurrency: { value: "N", default: "4", what: "how many sessions are copied in parallel" },
    "trust-store": TRUST_STORE_OPTION,
    create: CREATE_OPTION,
  },
  examples: [
    { line: "skein copy --from sqlite:./skein.db --to jsonl:./sessions", what: "every session as a readable file" },
  ],
  json: {
    sessions: "the number of sessions that are the same in both stores",
    entriesWritten: "the number of entries that were written",
    checkpoints: "the number of checkpoints that were copied",
    forked: "the number of sessions that were stored as forks, sharing entries with their source",
    failures: "sessions that were not copied: sessionId, code, message",
  },
  store: "none",
  async run(context) {
    const { values } = context;
    const [source, target] = [textOption(values, "from") ?? context.storeUrl, textOption(values, "to")];
    if (target === undefined || source === target) {
      throw new SessionError("INVALID_OPTION", "copy needs --to with the URL of a store other than --from.");
    }
    const concurrency = countOption(values, "concurrency") ?? 4;
    const fromEnvironment = textOption(values, "from") === undefined;
    await using from = await context.openNamed(source, {
      fromEnvironment,
      missingAdvice: "check the path",
      copies: true,
    });
    await using to = await context.openNamed(target, { acts: false });
    const sessions = textsOption(values, "session");
    const result =
      sessions.length > 0 ? await copyEach(from, to, sessions, context) : await copyAll(from, to, concurrency, context);
    const failures = result.failures.map(({ sessionId, error }) => ({
      sessionId,
      code: error.code,
      message: error.message,
    }));
    if (context.json) context.printJson({ ...result, failures });
    else {
      for (const { sessionId, message } of failures) context.print(`not copied: ${sessionId ?? ""}: ${message}`);
      context.print(
        `${counted(result.sessions, "session is", "sessions are")} the same in both stores; ${counted(result.entriesWritten, "entry was", "entries were")} written.`,
      );
    }
    return failures.length === 0 ? 0 : 1;
  },
};

async function copyAll(
  from: SessionStore,
  to: SessionStore,
  concurrency: number,
  context: CommandContext,
): Promise<StoreCopy> {
  const { values, signal, progress } = context;
  return copyStore(from, to, {
    signal,
    includeDeleted: values["deleted"] === true,
    concurrency,
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
