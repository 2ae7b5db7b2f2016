import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { dirname } from "node:path";
import { SessionError, type SessionHead, type SessionStore } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import type { ForeignWriting } from "../../../interop/formats/index.ts";
import { makePrivateDirectory } from "../../../internal/private-file.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { beginWriting, FOREIGN_NAMES, reportJson, reportLines } from "./foreign-export.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { batches, exists, writeNewFile } from "./write-new-file.ts";

/** Hands a session over to another program. */
export const handoff: Command = {
  name: "handoff",
  summary: "Write a session where another program finds it, and print how to continue it there.",
  details:
    "The session here is not changed. An existing file of the program is never replaced: the session gets a new id there instead.",
  arguments: [SESSION_ARGUMENT],
  options: {
    to: { value: "PROGRAM", choices: FOREIGN_NAMES, what: "the program" },
    cwd: { value: "DIRECTORY", what: "the working directory of the program (default: the session's directory)" },
    sanitize: { what: "replace secrets by [secret 1] and home directories by ~" },
    exec: { what: "start the program" },
  },
  examples: [
    { line: "skein handoff last --to claude-code", what: "continue in Claude Code, with the printed command" },
    { line: "skein handoff 0199a3 --to pi --exec", what: "continue in pi right away" },
  ],
  json: {
    session: "the id of the session",
    path: "the file that was written",
    cwd: "the directory to run the commands in",
    commands: "the command lines to run in order; the last one continues the session",
    report: "the report, as in export",
  },
  store: "existing",
  async run(context) {
    const { values, signal } = context;
    if (textOption(values, "to") === undefined)
      throw new SessionError("INVALID_OPTION", `handoff needs --to with one of ${FOREIGN_NAMES.join(", ")}.`);
    await using store = await context.openStore();
    const head = await findSession(store, context.positionals[0] as string);
    const { pieces, report, handoff, cwd } = await writingOf(context, store, head);
    const { path, commands } = handoff;
    const starts = values["exec"] === true;
    await makePrivateDirectory(dirname(path)).catch((error: unknown) => refuseLongName(error, cwd));
    await writeNewFile(path, batches(pieces, signal));
    if (context.json) {
      context.printJson({ session: head.header.id, path, cwd, commands, report: reportJson(report) });
    } else {
      context.print(`The session was written to ${path}.`);
      for (const line of reportLines(report, values["sanitize"] === true)) context.print(line);
      if (commands.length === 0)
        context.print(
          `${textOption(values, "to")} has no command that continues it: open the file from your own program.`,
        );
      else if (!starts) {
        context.print("Continue it with:");
        for (const line of [["cd", ...(cwd.startsWith("-") ? ["--"] : []), cwd], ...commands])
          context.print(`  ${line.map(quoted).join(" ")}`);
      }
    }
    return starts ? start(commands, cwd) : 0;
  },
};

/** The export under the session's id in the other program; under a new id if that file exists. */
async function writingOf(context: CommandContext, store: SessionStore, head: SessionHead): Promise<ForeignWriting> {
  // The file names the directory that the program works in, so the directory is never sanitized.
  const cwd = textOption(context.values, "cwd") ?? head.header.cwd ?? process.cwd();
  const values = { ...context.values, cwd };
  const writing = await beginWriting({ ...context, values }, store, head);
  if (!(await exists(writing.handoff.path))) return writing;
  return beginWriting({ ...context, values }, store, head, randomUUID());
}

/** The other program names a directory after the working directory, which an imported file may have chosen. */
function refuseLongName(cause: unknown, cwd: string): never {
  if ((cause as NodeJS.ErrnoException).code !== "ENAMETOOLONG") throw cause;
  const message = `The directory ${show(cwd)} is too long for the name of a file; choose another with --cwd.`;
  throw new SessionError("INVALID_OPTION", message, { cause });
}

async function start(commands: readonly (readonly string[])[], cwd: string): Promise<number> {
  for (const [program = "", ...args] of commands) {
    const child = spawn(program, args, { cwd, stdio: "inherit" });
    const ended = once(child, "exit");
    const failed = once(child, "error").then(([error]) => Promise.reject(error as Error));
    const [code] = await Promise.race([ended, failed]).catch((cause: unknown) => {
      const message = `${program} could not be started; install it, or run the command without --exec.`;
      throw new SessionError("INVALID_OPTION", message, { cause });
    });
    if (code !== 0) return 1;
  }
  return 0;
}

function quoted(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
