import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { dirname } from "node:path";
import { SessionError, type SessionStore } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { type ForeignWriting, foreignFormat, type WriteReport, writeForeign } from "../../../interop/formats/index.ts";
import { makePrivateDirectory } from "../../../internal/private-file.ts";
import { type Command, textOption } from "../../command.ts";
import { FOREIGN_NAMES, KEEP_EDITS, reportJson, reportLines } from "./foreign-export.ts";
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
    "keep-edits": { what: KEEP_EDITS },
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
    const starts = values["exec"] === true;
    const { path, cwd, commands, report } = await writeHandoff(store, head.header.id, {
      to: textOption(values, "to") as string,
      cwd: textOption(values, "cwd"),
      sanitize: values["sanitize"] === true,
      keepEdits: values["keep-edits"] === true,
      signal,
    });
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

/** How a session is written for another program. */
interface HandoffOptions {
  /** The name of the program. */
  readonly to: string;
  /** The working directory for the program (default: the session's, else the current one). */
  readonly cwd?: string | undefined;
  readonly sanitize?: boolean;
  readonly keepEdits?: boolean;
  readonly signal: AbortSignal;
}

/** A session that was written for another program. */
interface WrittenSession {
  readonly path: string;
  readonly cwd: string;
  readonly commands: readonly (readonly string[])[];
  readonly report: WriteReport;
}

/** Writes a session where another program finds it: under its id there, or under a new one if that file exists. */
export async function writeHandoff(
  store: SessionStore,
  sessionId: string,
  { to, cwd: given, sanitize = false, keepEdits = false, signal }: HandoffOptions,
): Promise<WrittenSession> {
  const head = await store.head(sessionId);
  // The file names the directory that the program works in, so the directory is never sanitized.
  const named = given ?? head?.header.cwd ?? process.cwd();
  const begin = (foreignId?: string): Promise<ForeignWriting> =>
    writeForeign(foreignFormat(to), store, sessionId, {
      sanitize,
      ...(keepEdits && { edits: "keep" as const }),
      cwd: named,
      ...(foreignId === undefined ? {} : { foreignId }),
    });
  const first = await begin();
  const { pieces, report, handoff, cwd } = (await exists(first.handoff.path)) ? await begin(randomUUID()) : first;
  const { path, commands } = handoff;
  await makePrivateDirectory(dirname(path)).catch((error: unknown) => refuseLongName(error, cwd));
  await writeNewFile(path, batches(pieces, signal));
  return { path, cwd, commands, report };
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
