import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { counted } from "../../terminal.ts";
import { importSession, readLines } from "../../../export/index.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { detectFormat, foreignFormat } from "../../../interop/formats/index.ts";
import { FOREIGN_NAMES } from "./foreign-export.ts";
import { allSources, importForeignFiles } from "./foreign-import.ts";
import { findBlobsIn } from "../../options/blob-folder.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";

/** Imports sessions of Skein and of other programs. */
export const importCommand: Command = {
  name: "import",
  summary: "Import a session from a JSONL export or a session file, or import the sessions of another program.",
  details:
    "An import takes over the messages. Approvals, runs and sandboxes that the file records have no force, unless --trust is given: use it to move sessions between your own stores, never for a file that someone else may have written. Sessions of other programs can be imported again at any time: only new messages are added, and the program's own files are never changed.",
  arguments: [
    {
      name: "file",
      optional: true,
      what: "the file; - for the standard input; a directory for all files below it (default with --from: where the program keeps its sessions)",
    },
  ],
  options: {
    from: {
      value: "PROGRAM",
      choices: FOREIGN_NAMES,
      what: "the program that wrote it (default: detected from the content)",
    },
    all: { what: "import the sessions of all programs on this machine that keep them in files" },
    since: { value: "AGE", what: "for another program: only files changed within this time, as in 30d" },
    "dry-run": { what: "for another program: only print what would be imported" },
    follow: { what: "with --from or --all: keep importing what the programs add, until stopped with Ctrl-C" },
    user: {
      value: "ID",
      what: "the user that the session belongs to (default: as in the file; for another program, you)",
    },
    id: { value: "ID", what: "its id in this store (default: as in the file)" },
    blobs: { value: "FOLDER", what: "the folder with the images and files to which the file refers" },
    trust: {
      what: "trust the file: its approvals and runs count, and its tools work in the directory that it names",
    },
  },
  examples: [
    { line: "skein import talk.jsonl", what: "import an exported session" },
    { line: "skein import talk.jsonl --trust", what: "import an export of your own, including its runs" },
    {
      line: "skein import --from claude-code",
      what: "import all sessions of Claude Code; the next time, only what is new",
    },
    { line: "skein import --all", what: "import the sessions of every program on this machine" },
    {
      line: "skein import --from pi ~/old --since 30d --dry-run",
      what: "see what would be imported from a directory of pi",
    },
    { line: "skein import talk.jsonl --id talk-2", what: "import a second copy under another id" },
  ],
  json: {
    session: "the id of the session",
    version: "the number of its entries",
    files: "for another program: the number of files that were read",
    unknown: "the number of files of no known program",
    entries: "the number of added entries",
    sessions:
      "the numbers of sessions that are new, grown, same (unchanged), or deleted (here, and not imported again)",
    lines:
      "the numbers of lines that were mapped (to entries), kept (unchanged), tooLarge (of those kept), doubled (duplicates), lost (unreadable)",
    lost: "the first unreadable lines: file, line and reason",
    kinds: "the number of lines of each kind that this version does not know; they are kept",
  },
  store: "made",
  async run(context) {
    const file = context.positionals[0];
    const from = textOption(context.values, "from");
    if (context.values["all"] === true) {
      const other = file === undefined ? from && "--from" : "a file";
      if (other !== undefined) throw new SessionError("INVALID_OPTION", `Give --all or ${other}, not both.`);
      return importForeignFiles(context, await allSources());
    }
    const path = file === undefined ? {} : { path: file };
    if (from !== undefined) return importForeignFiles(context, [{ format: foreignFormat(from), ...path }]);
    if (file === undefined)
      throw new SessionError("INVALID_OPTION", "import needs a file, --from with a program, or --all.");
    if (await isForeign(file)) return importForeignFiles(context, [{ format: null, path: file }]);
    return importOwn(context, file);
  },
};

/** True if a path is a directory, or a file that another program has written. */
async function isForeign(file: string): Promise<boolean> {
  const found = file === "-" ? null : await stat(file).catch(() => null);
  return found !== null && (found.isDirectory() || (found.isFile() && (await detectFormat(file)) !== null));
}

async function importOwn(context: CommandContext, file: string): Promise<number> {
  const [userId, id] = [textOption(context.values, "user"), textOption(context.values, "id")];
  const trust = context.values["trust"] === true;
  const folder = textOption(context.values, "blobs");
  const findBlob = folder === undefined ? undefined : await findBlobsIn(folder);
  await using store = await context.openStore();
  const { header, version } = await importSession(store, readLines(bytesOf(file, context.signal)), {
    ...(userId === undefined ? {} : { userId }),
    ...(id === undefined ? {} : { id }),
    ...(findBlob === undefined ? {} : { findBlob }),
    trust,
  });
  if (context.json) context.printJson({ session: header.id, version });
  else {
    context.print(`Session ${header.id} has been imported with ${counted(version, "entry", "entries")}.`);
    if (!trust) {
      context.print("Approvals and runs of the file have no force; import your own files with --trust to keep them.");
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
