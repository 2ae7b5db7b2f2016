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

/** Gives a session to another program. */
export const handoff: Command = {
  name: "handoff",
  summary: "Put a session where another program looks for its own, and say how to go on with it there.",
  details:
    "The session stays here as it is. A file of the program's that is there already is never replaced: the session then goes there under a new id.",
  arguments: [SESSION_ARGUMENT],
  options: {
    to: { value: "PROGRAM", choices: FOREIGN_NAMES, what: "the program" },
    cwd: { value: "DIRECTORY", what: "where the program is to work (default: the session's directory)" },
    sanitize: { what: "write [secret 1] for secrets and ~ for home directories" },
    exec: { what: "start the program at once" },
  },
  examples: [
    { line: "skein handoff last --to claude-code", what: "go on in Claude Code, with the command that it prints" },
    { line: "skein handoff 0199a3 --to pi --exec", what: "go on in pi at once" },
  ],
  json: {
    session: "the id of the session",
    path: "the file that was written",
    cwd: "where to run the commands",
    commands: "the command lines, one after the other; the last one goes on with the session",
    report: "how many entries were written, and what was left out",
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
      context.print(`The session is in ${path}.`);
      for (const line of reportLines(report, values["sanitize"] === true)) context.print(line);
      if (commands.length === 0)
        context.print(
          `No command of ${textOption(values, "to")} goes on with it: open that file from your own program.`,
        );
      else if (!starts) {
        context.print("Go on with it:");
        for (const line of [["cd", ...(cwd.startsWith("-") ? ["--"] : []), cwd], ...commands])
          context.print(`  ${line.map(quoted).join(" ")}`);
      }
    }
    return starts ? start(commands, cwd) : 0;
  },
};

/** Under the id that the program knows it by, or, where it has a file of that id, under a new one. */
async function writingOf(context: CommandContext, store: SessionStore, head: SessionHead): Promise<ForeignWriting> {
  // The program works in the directory that the file names, so that it is written as it is.
  const cwd = textOption(context.values, "cwd") ?? head.header.cwd ?? process.cwd();
  const values = { ...context.values, cwd };
  const writing = await beginWriting({ ...context, values }, store, head);
  if (!(await exists(writing.handoff.path))) return writing;
  return beginWriting({ ...context, values }, store, head, randomUUID());
}

/** A program names a directory after the one that it works in, which the file of an import may have chosen. */
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
