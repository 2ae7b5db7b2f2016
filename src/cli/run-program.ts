import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { SessionError, type SessionStore } from "../index.ts";
import { show } from "../session/errors.ts";
import { loadPricesOfEnvironment } from "../models/price-list.ts";
import { defaultStoreUrl } from "../tree/home.ts";
import { type Command, type CommandContext, textOption } from "./command.ts";
import { commandHelp, programHelp } from "./help.ts";
import { suggestion } from "../internal/nearest.ts";
import { type NamedStoreOptions, openNamedStore } from "./open-named-store.ts";
import { type ParsedCommandLine, parseCommandLine, splitCommandLine } from "./parse-command-line.ts";
import { createTerminal, printable } from "./terminal.ts";
import { VERSION } from "../internal/version.ts";

const LINE_CHARACTERS_MAX = 2000;
const PROGRESS_EVERY_MS = 1000;
const KEYS_SHOW =
  "On this system, commands of tools that are not isolated can read the API keys in this program's environment.";
/** Error codes of an invalid command line; they exit with 2. */
const MISTAKES: ReadonlySet<string> = new Set(["INVALID_OPTION", "INVALID_QUERY", "INVALID_ID"]);

/** The output streams of a program, and how it is interrupted. */
export interface ProgramOutput {
  /** Writes a part of the result. */
  out(text: string): void;
  /** Resolves when the stream has room for more; left out if it always has. */
  room?(): Promise<void>;
  /** Writes a line that is not the result. */
  err(text: string): void;
  /** Whether the result is printed in colours. */
  readonly colours: boolean;
  /** The width of the terminal; left out without one. */
  readonly columns?: number;
  /** True if the standard error is a terminal, so that progress is printed. */
  readonly watched: boolean;
  readonly signal: AbortSignal;
  /** Asks the person at the terminal; left out without a terminal. */
  ask?(question: string): Promise<string>;
  /** True if commands of tools cannot read API keys from this process's environment. Undefined counts as true. */
  readonly keysHidden?: boolean;
}

/**
 * Runs one command line of `skein`; resolves to its exit code.
 *
 * - 0: success. 1: a failure or a finding. 2: an invalid command line; nothing was done.
 * - A failure prints one sentence on the standard error, without a stack trace and without the password of a URL.
 * - No text of a session can control the terminal.
 */
export async function runProgram(
  commands: readonly Command[],
  args: readonly string[],
  output: ProgramOutput,
): Promise<number> {
  try {
    return await dispatch(commands, args, output);
  } catch (error) {
    printError(output, error instanceof Error ? error.message : String(error));
    return error instanceof SessionError && MISTAKES.has(error.code) ? 2 : 1;
  }
}

async function dispatch(commands: readonly Command[], args: readonly string[], output: ProgramOutput): Promise<number> {
  const { name, rest } = splitCommandLine(args);
  if (name === null) return withoutCommand(commands, rest, output);
  if (name === "help" && rest.length === 0) return printLine(output, programHelp(commands, output.columns));
  const wanted = name === "help" ? (rest[0] as string) : name;
  const command = commands.find((candidate) => candidate.name === wanted);
  if (command === undefined) {
    const names = commands.map((candidate) => candidate.name);
    const near = suggestion(wanted, names) || " skein --help lists the commands.";
    throw new SessionError("INVALID_OPTION", `There is no command ${show(wanted)};${near}`);
  }
  const parsed = name === "help" ? null : parseCommandLine(command, rest);
  if (parsed === null || parsed.values["help"] === true) return printLine(output, commandHelp(command, output.columns));
  if (command.runsTools === true && output.keysHidden === false) printError(output, KEYS_SHOW);
  loadPricesOfEnvironment();
  const context = contextOf(command, parsed, output);
  if (command.store !== "none" && parsed.values["store"] === undefined) warnAboutLocalStore(context);
  return command.run(context);
}

function withoutCommand(commands: readonly Command[], args: readonly string[], output: ProgramOutput): number {
  if (args.includes("--version")) return printLine(output, VERSION);
  const [first] = args;
  const isPlain = args.every((given) => given === "--json" || given === "--no-color");
  if (first === undefined || isPlain || args.includes("--help") || args.includes("-h"))
    return printLine(output, programHelp(commands, output.columns));
  throw new SessionError(
    "INVALID_OPTION",
    `The command is missing before ${show(first)}; skein --help lists the commands.`,
  );
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
    print: (text) => void printLine(output, printable(text, LINE_CHARACTERS_MAX)),
    printJson: (value) =>
      void printLine(output, JSON.stringify(value).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, escaped)),
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
      printError(output, text);
    },
    fail: (text) => printError(output, text),
  };
  return context;
}

async function openOf(context: CommandContext, command: Command, given: string | undefined): Promise<SessionStore> {
  const advice = given === undefined ? "name another with --store URL, or create it with skein chat" : "check the path";
  return context.openNamed(context.storeUrl, {
    fromEnvironment: given === undefined,
    ...(command.store === "made" ? {} : { missingAdvice: advice }),
  });
}

/** How a command decides whether a store is trusted. */
function trustOf({ values, confirm, fail }: CommandContext, command: Command): NamedStoreOptions {
  return { trust: values["trust-store"] === true, acts: command.readsOnly !== true, confirm, tell: fail };
}

/** Earlier versions used the store in the current directory by default. */
function warnAboutLocalStore({ storeUrl, fail }: CommandContext): void {
  const local = join(".skein", "skein.db");
  if (storeUrl === `sqlite:${resolve(local)}` || !existsSync(local)) return;
  fail(`./${local} is no longer used by default; open it with --store sqlite:./${local}.`);
}

function printLine(output: ProgramOutput, text: string): number {
  output.out(`${text}\n`);
  return 0;
}

function printError(output: ProgramOutput, text: string): void {
  // Removes the user and password of URLs in messages.
  const redacted = text.replace(/\/\/[^/@\s]*@/g, "//…@");
  output.err(`${printable(redacted, LINE_CHARACTERS_MAX)}\n`);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
