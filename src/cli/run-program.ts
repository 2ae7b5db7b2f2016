import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { SessionError, type SessionStore } from "../index.ts";
import { show } from "../session/errors.ts";
import { defaultStoreUrl } from "../tree/home.ts";
import { type Command, type CommandContext, textOption } from "./command.ts";
import { commandHelp, programHelp } from "./help.ts";
import { suggestion } from "../internal/nearest.ts";
import { type NamedStoreOptions, openNamedStore } from "./open-named-store.ts";
import { type ParsedCommandLine, parseCommandLine, splitCommandLine } from "./parse-command-line.ts";
import { createTerminal, printable } from "./terminal.ts";
import { versionOfPackage } from "./package-files.ts";

const LINE_CHARACTERS_MAX = 2000;
const PROGRESS_EVERY_MS = 1000;
const KEYS_SHOW =
  "On this system, commands of tools can read the keys in the environment of this program unless they are isolated.";
/** What is wrong with a command line, and not with the store. */
const MISTAKES: ReadonlySet<string> = new Set(["INVALID_OPTION", "INVALID_QUERY", "INVALID_ID"]);

/** Where a program's output goes, and how it is interrupted. */
export interface ProgramOutput {
  /** Takes a part of the result. */
  out(text: string): void;
  /** Resolves when there is room for more of it; left out where there always is. */
  room?(): Promise<void>;
  /** Takes a line that is not the result. */
  err(text: string): void;
  /** Whether the result is shown in colours. */
  readonly colours: boolean;
  /** How wide the terminal is; left out where there is none. */
  readonly columns?: number;
  /** Whether someone looks at the error output, so that progress is worth telling. */
  readonly watched: boolean;
  readonly signal: AbortSignal;
  /** Asks whoever sits at the terminal; left out where nobody does. */
  ask?(question: string): Promise<string>;
  /** Whether commands of tools can read no key in the environment of this process; not said where there are none. */
  readonly keysHidden?: boolean;
}

/**
 * Runs one command line of `skein`; resolves to its exit code.
 *
 * - 0: all is well. 1: it is not, or it could not be done. 2: the command line cannot be understood; nothing was done.
 * - A failure is one sentence on the error output, without a stack and without the password of a URL.
 * - Nothing that a session says can steer a terminal.
 */
export async function runProgram(
  commands: readonly Command[],
  args: readonly string[],
  output: ProgramOutput,
): Promise<number> {
  try {
    return await dispatch(commands, args, output);
  } catch (error) {
    complain(output, error instanceof Error ? error.message : String(error));
    return error instanceof SessionError && MISTAKES.has(error.code) ? 2 : 1;
  }
}

async function dispatch(commands: readonly Command[], args: readonly string[], output: ProgramOutput): Promise<number> {
  const { name, rest } = splitCommandLine(args);
  if (name === null) return withoutCommand(commands, rest, output);
  if (name === "help" && rest.length === 0) return say(output, programHelp(commands, output.columns));
  const wanted = name === "help" ? (rest[0] as string) : name;
  const command = commands.find((candidate) => candidate.name === wanted);
  if (command === undefined) {
    const names = commands.map((candidate) => candidate.name);
    const near = suggestion(wanted, names) || " skein --help lists them.";
    throw new SessionError("INVALID_OPTION", `There is no command ${show(wanted)};${near}`);
  }
  const parsed = name === "help" ? null : parseCommandLine(command, rest);
  if (parsed === null || parsed.values["help"] === true) return say(output, commandHelp(command, output.columns));
  if (command.runsTools === true && output.keysHidden === false) complain(output, KEYS_SHOW);
  const context = contextOf(command, parsed, output);
  if (command.store !== "none" && parsed.values["store"] === undefined) tellOfLocalStore(context);
  return command.run(context);
}

function withoutCommand(commands: readonly Command[], args: readonly string[], output: ProgramOutput): number {
  if (args.includes("--version")) return say(output, versionOfPackage());
  const [first] = args;
  if (first === undefined || args.includes("--help") || args.includes("-h"))
    return say(output, programHelp(commands, output.columns));
  throw new SessionError("INVALID_OPTION", `There is no command beside ${show(first)}; skein --help lists them.`);
}

function contextOf(command: Command, parsed: ParsedCommandLine, output: ProgramOutput): CommandContext {
  const { values, positionals } = parsed;
  const json = values["json"] === true;
  const colours = output.colours && values["no-color"] !== true;
  const given = textOption(values, "store");
  let last = 0;
  const context: CommandContext = {
    values,
    positionals,
    json,
    storeUrl: given ?? defaultStoreUrl(),
    terminal: createTerminal((text) => output.out(text), colours),
    signal: output.signal,
    openStore: () => openOf(context, command, given),
    openNamed: (url, options = {}) =>
      openNamedStore(url, { ...trustOf(context, command), create: values["create"] === true, ...options }),
    print: (text) => void say(output, printable(text, LINE_CHARACTERS_MAX)),
    printJson: (value) =>
      void say(output, JSON.stringify(value).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, escaped)),
    async write(text) {
      output.out(text);
      await output.room?.();
    },
    async confirm(question) {
      if (json || output.ask === undefined) return null;
      return /^y(es)?$/i.test((await output.ask(`${question} [y/N] `)).trim());
    },
    progress(text) {
      if (json || !output.watched || Date.now() - last < PROGRESS_EVERY_MS) return;
      last = Date.now();
      complain(output, text);
    },
    fail: (text) => complain(output, text),
  };
  return context;
}

async function openOf(context: CommandContext, command: Command, given: string | undefined): Promise<SessionStore> {
  const advice = given === undefined ? "name another with --store URL, or make it with skein chat" : "check the path";
  return context.openNamed(context.storeUrl, {
    fromEnvironment: given === undefined,
    ...(command.store === "made" ? {} : { missingAdvice: advice }),
  });
}

/** How a command finds out whether a store is its user's. */
function trustOf({ values, confirm, fail }: CommandContext, command: Command): NamedStoreOptions {
  return { trust: values["trust-store"] === true, acts: command.readsOnly !== true, confirm, tell: fail };
}

/** Earlier versions took the store of the current directory without being told to. */
function tellOfLocalStore({ storeUrl, fail }: CommandContext): void {
  const local = join(".skein", "skein.db");
  if (storeUrl === `sqlite:${resolve(local)}` || !existsSync(local)) return;
  fail(`./${local} is not used any more unless it is named; open it with --store sqlite:./${local}.`);
}

function say(output: ProgramOutput, text: string): number {
  output.out(`${text}\n`);
  return 0;
}

function complain(output: ProgramOutput, text: string): void {
  // A URL that is repeated in a message must not bring its password along.
  const harmless = text.replace(/\/\/[^/@\s]*@/g, "//…@");
  output.err(`${printable(harmless, LINE_CHARACTERS_MAX)}\n`);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
