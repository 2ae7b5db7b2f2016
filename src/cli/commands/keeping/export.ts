import { extname } from "node:path";
import { EXPORT_FORMATS, type ExportFormat, exportSession } from "../../../export/index.ts";
import { SessionError } from "../../../index.ts";
import { writeBlobsTo } from "../../options/blob-folder.ts";
import { CREATE_OPTION } from "../../parse-command-line.ts";
import { type Command, textOption } from "../../command.ts";
import { exportForeign, FOREIGN_NAMES } from "./foreign-export.ts";
import { ENTRY_NAMES, findEntry, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { batches, refuseExisting, writeNewFile, writingOf } from "./write-new-file.ts";

const FORMAT_OF: Readonly<Record<string, ExportFormat>> = {
  ".jsonl": "jsonl",
  ".md": "markdown",
  ".markdown": "markdown",
  ".html": "html",
  ".htm": "html",
};

/** Exports a session to a file or to the standard output. */
export const exportCommand: Command = {
  name: "export",
  summary: "Export a session as Markdown, HTML, JSONL (which can be imported), or in the format of another program.",
  details:
    "JSONL holds the whole log, or with --leaf the path to that entry; the other formats hold one path. --sanitize finds keys, tokens and passwords by their shape and by their names, and may miss some: read the result before you share it.",
  arguments: [SESSION_ARGUMENT],
  options: {
    format: {
      value: "FORMAT",
      choices: EXPORT_FORMATS,
      what: "the format (default: by the extension of the file, otherwise markdown)",
    },
    to: {
      value: "PROGRAM",
      choices: FOREIGN_NAMES,
      what: "write it in the format of this program, instead of --format",
    },
    cwd: {
      value: "DIRECTORY",
      what: "with --to, the working directory of the program (default: the session's directory)",
    },
    output: { value: "FILE", what: "the file to write (default: the standard output)" },
    force: { what: "replace the file if it exists" },
    create: CREATE_OPTION,
    sanitize: { what: "replace secrets by [secret 1] and home directories by ~" },
    blobs: {
      value: "FOLDER",
      what: "JSONL: write images and files to this folder, and references to them to the file (default: their data is in the file)",
    },
    leaf: { value: "ENTRY", what: `the entry where the path ends: ${ENTRY_NAMES} (default leaf)` },
  },
  examples: [
    { line: "skein export last --output talk.html", what: "a page to share, which opens offline" },
    {
      line: "skein export 0199a3 --format jsonl --sanitize > talk.jsonl",
      what: "a file for skein import, without secrets",
    },
    {
      line: "skein export last --output talk.jsonl --blobs talk-files",
      what: "a file without images and files, which are in a folder beside it",
    },
    { line: "skein export last --to pi --output talk.jsonl", what: "a session that pi can continue" },
  ],
  json: {
    session: "the id of the session",
    format: "the format",
    output: "the file",
    bytes: "its size",
    report:
      "with --to: written (entries), verbatim (lines copied from the program's own file), secrets (found), and left (entries that the format cannot hold, by type)",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { values } = context;
    const output = textOption(values, "output");
    if (output === undefined && context.json)
      throw new SessionError("INVALID_OPTION", "--json needs --output, as it prints JSON about the written file.");
    if (output === "") throw new SessionError("INVALID_OPTION", "--output is empty; give the name of a file.");
    if (textOption(values, "to") !== undefined) return exportForeign(context, output);
    const ending = extname(output ?? "").toLowerCase();
    const format = (textOption(values, "format") ?? FORMAT_OF[ending] ?? "markdown") as ExportFormat;
    if (output !== undefined && values["force"] !== true) await refuseExisting(output);
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const leaf = textOption(values, "leaf");
    const folder = textOption(values, "blobs");
    if (folder !== undefined && format !== "jsonl")
      throw new SessionError(
        "INVALID_OPTION",
        `--blobs is for JSONL; ${format} has images and files in itself or by name.`,
      );
    const pieces = exportSession(store, head.header.id, {
      format,
      sanitize: values["sanitize"] === true,
      ...(folder === undefined ? {} : { onBlob: writeBlobsTo(folder) }),
      ...(leaf === undefined ? {} : { leafId: (await findEntry(store, head, leaf)).id }),
    });
    if (output === undefined) {
      for await (const batch of batches(pieces, context.signal)) await context.write(escapeControls(batch));
      return 0;
    }
    const bytes = await writeNewFile(output, batches(pieces, context.signal), writingOf(values));
    const session = head.header.id;
    if (context.json) context.printJson({ session, format, output, bytes });
    else context.print(`${output}: ${format}, ${bytes} bytes.`);
    return 0;
  },
};

/** Escapes control characters and bidirectional marks as JSON does; in Markdown and HTML the exporters leave none. */
function escapeControls(text: string): string {
  return text.replace(
    /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
