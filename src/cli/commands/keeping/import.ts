import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { counted } from "../../terminal.ts";
import { importSession, readLines } from "../../../export/index.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { detectFormat, foreignFormat } from "../../../interop/formats/index.ts";
import { FOREIGN_NAMES } from "./foreign-export.ts";
import { importForeignFiles } from "./foreign-import.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";

/** Takes in sessions of Skein and of other programs. */
export const importCommand: Command = {
  name: "import",
  summary: "Take in a session from a JSONL export or a session's file, or the sessions of another program.",
  details:
    "What comes in is words: what the file approved, was running or left waiting does not count, and neither does where its tools acted. --trust is for moving sessions between stores of your own, never for a file that someone else may have written. Sessions of other programs can be imported again at any time: only what is new is added, and the program's own files are never touched.",
  arguments: [
    {
      name: "file",
      optional: true,
      what: "the file, or - for the standard input; a directory for all below it; with --from, where the program keeps its sessions if this is not given",
    },
  ],
  options: {
    from: {
      value: "PROGRAM",
      choices: FOREIGN_NAMES,
      what: "the program that wrote it (default: by what stands in the file)",
    },
    since: { value: "AGE", what: "of another program, only files that were changed in this time, as in 30d" },
    "dry-run": { what: "of another program, say what would be imported, and store nothing" },
    follow: { what: "with --from, go on and import what the program adds, until it is told to stop" },
    user: { value: "ID", what: "whose session it becomes (default: as in the file; of another program, yours)" },
    id: { value: "ID", what: "its id in this store (default: as in the file)" },
    trust: {
      what: "take the log as your own: its approvals count, its runs can go on, its tools act where it says",
    },
  },
  examples: [
    { line: "skein import talk.jsonl", what: "a session that was exported elsewhere" },
    { line: "skein import talk.jsonl --trust", what: "one of your own, to go on with where it stopped" },
    { line: "skein import --from claude-code", what: "all sessions of Claude Code; again, only what is new" },
    { line: "skein import --from pi ~/old --since 30d --dry-run", what: "what would come in from a directory of pi's" },
    { line: "skein import talk.jsonl --id talk-2", what: "beside the session that it was exported from" },
  ],
  json: {
    session: "the id of the session",
    version: "how many entries it has",
    files: "of another program: how many files were looked at",
    unknown: "how many of them no known program has written",
    entries: "how many entries were added",
    sessions: "how many sessions are new, grown, the same, or deleted here and left so",
    lines: "what became of the lines: mapped, kept, tooLarge (of those kept), doubled, lost",
    lost: "the first lines that could not be read: file, line and reason",
    kinds: "how many lines are of each kind that this version does not know; they are kept",
  },
  store: "made",
  async run(context) {
    const file = context.positionals[0];
    const from = textOption(context.values, "from");
    if (from !== undefined) return importForeignFiles(context, foreignFormat(from), file);
    if (file === undefined) throw new SessionError("INVALID_OPTION", "import needs a file, or --from with a program.");
    if (await isForeign(file)) return importForeignFiles(context, null, file);
    return importOwn(context, file);
  },
};

/** Whether a path is a directory, or a file that another program has written. */
async function isForeign(file: string): Promise<boolean> {
  const found = file === "-" ? null : await stat(file).catch(() => null);
  return found !== null && (found.isDirectory() || (found.isFile() && (await detectFormat(file)) !== null));
}

async function importOwn(context: CommandContext, file: string): Promise<number> {
  const [userId, id] = [textOption(context.values, "user"), textOption(context.values, "id")];
  const trust = context.values["trust"] === true;
  await using store = await context.openStore();
  const { header, version } = await importSession(store, readLines(bytesOf(file, context.signal)), {
    ...(userId === undefined ? {} : { userId }),
    ...(id === undefined ? {} : { id }),
    trust,
  });
  if (context.json) context.printJson({ session: header.id, version });
  else {
    context.print(`Session ${header.id} has been imported with ${counted(version, "entry", "entries")}.`);
    if (!trust) {
      context.print(
        "It was imported as words: what it approved or was running does not count; --trust takes it as your own.",
      );
    }
  }
  return 0;
}

async function* bytesOf(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const piece of file === "-" ? process.stdin : createReadStream(file)) {
      signal.throwIfAborted();
      yield piece as Uint8Array;
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (cause instanceof SessionError || code === undefined) throw cause;
    throw new SessionError("INVALID_OPTION", `${show(file)} cannot be read (${code}); check the path.`, { cause });
  }
}
