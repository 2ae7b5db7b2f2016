import { extname } from "node:path";
import { EXPORT_FORMATS, type ExportFormat, exportSession } from "../../../export/index.ts";
import { SessionError } from "../../../index.ts";
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

/** Writes a session to a file, or to the standard output. */
export const exportCommand: Command = {
  name: "export",
  summary: "Write a session as Markdown, HTML, JSONL that can be imported again, or as another program's session.",
  details:
    "JSONL holds all of the log, or with --leaf the path to that entry; the others hold one path. --sanitize looks for keys, tokens and passwords by how they look and by their names: read what comes out before you share it.",
  arguments: [SESSION_ARGUMENT],
  options: {
    format: {
      value: "FORMAT",
      choices: EXPORT_FORMATS,
      what: "what to write (default: by the ending of the file, otherwise markdown)",
    },
    to: { value: "PROGRAM", choices: FOREIGN_NAMES, what: "write it as this program would have, instead of --format" },
    cwd: { value: "DIRECTORY", what: "with --to, where the program is to work (default: the session's directory)" },
    output: { value: "FILE", what: "the file to write (default: the standard output)" },
    force: { what: "replace the file if it is there" },
    create: CREATE_OPTION,
    sanitize: { what: "write [secret 1] for secrets and ~ for home directories" },
    leaf: { value: "ENTRY", what: `the entry where the path ends: ${ENTRY_NAMES} (default leaf)` },
  },
  examples: [
    { line: "skein export last --output talk.html", what: "a page to share, which opens without a network" },
    {
      line: "skein export 0199a3 --format jsonl --sanitize > talk.jsonl",
      what: "a file for skein import, without secrets",
    },
    { line: "skein export last --to pi --output talk.jsonl", what: "a session that pi opens and goes on with" },
  ],
  json: {
    session: "the id of the session",
    format: "what was written",
    output: "the file",
    bytes: "how large it is",
    report:
      "with --to: how many entries were written, how many lines of the program's own came out verbatim, what it cannot hold, and how many secrets were seen",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { values } = context;
    const output = textOption(values, "output");
    if (output === undefined && context.json)
      throw new SessionError("INVALID_OPTION", "export prints JSON about a file only; name one with --output.");
    if (output === "") throw new SessionError("INVALID_OPTION", "--output is empty; give the name of a file.");
    if (textOption(values, "to") !== undefined) return exportForeign(context, output);
    const ending = extname(output ?? "").toLowerCase();
    const format = (textOption(values, "format") ?? FORMAT_OF[ending] ?? "markdown") as ExportFormat;
    if (output !== undefined && values["force"] !== true) await refuseExisting(output);
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const leaf = textOption(values, "leaf");
    const pieces = exportSession(store, head.header.id, {
      format,
      sanitize: values["sanitize"] === true,
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

/** The same JSON, with escapes for what steers a terminal; Markdown and HTML hold nothing of the kind. */
function escapeControls(text: string): string {
  return text.replace(
    /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
