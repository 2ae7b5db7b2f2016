#!/usr/bin/env node
import { parseArgs } from "node:util";
import { SessionError } from "../index.ts";
import type { Command, CommandContext, CommandValues } from "./command.ts";
import { copy } from "./commands/copy.ts";
import { doctor } from "./commands/doctor.ts";
import { printable } from "./terminal.ts";

const COMMANDS: Readonly<Record<string, Command>> = { copy, doctor };
const LINE_CHARACTERS_MAX = 2000;
const PROGRESS_EVERY_MS = 1000;

const interrupted = new AbortController();

async function main(args: readonly string[]): Promise<number> {
  const [name = "--help", ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") return say(usage());
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    complain(`There is no command ${printable(name)}; skein --help lists them.`);
    return 2;
  }
  const options = { ...command.options, help: { type: "boolean", short: "h" } } as const;
  const { values, positionals } = parseArgs({ args: rest, options, allowPositionals: true });
  if (values.help === true) return say(helpOf(command));
  return command.run(contextOf(values as CommandValues, positionals));
}

function contextOf(values: CommandValues, positionals: readonly string[]): CommandContext {
  let last = 0;
  return {
    values,
    positionals,
    signal: interrupted.signal,
    print: (text) => void say(printable(text, LINE_CHARACTERS_MAX)),
    printJson: (value) => void say(JSON.stringify(value).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, escaped)),
    progress(text) {
      if (Date.now() - last < PROGRESS_EVERY_MS) return;
      last = Date.now();
      complain(text);
    },
    fail: complain,
  };
}

function usage(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return ["Usage: skein <command> [options]", "", ...lines, "", "skein <command> --help says more."].join("\n");
}

function helpOf(command: Command): string {
  return [`Usage: skein ${command.usage}`, "", command.summary, "", ...command.help.map((line) => `  ${line}`)].join(
    "\n",
  );
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function complain(text: string): void {
  // A URL that is repeated in a message must not bring its password along.
  const harmless = text.replace(/\/\/[^/@\s]*@/g, "//…@");
  process.stderr.write(`${printable(harmless, LINE_CHARACTERS_MAX)}\n`);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** What a failure means for whoever called the program. */
function exitCodeOf(error: unknown): number {
  if (error instanceof SessionError) return error.code === "INVALID_OPTION" ? 2 : 1;
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" && code.startsWith("ERR_PARSE_ARGS") ? 2 : 1;
}

// The second interrupt ends the program as usual.
process.once("SIGINT", () => interrupted.abort(new SessionError("ABORTED", "The command was interrupted.")));
// Whoever reads the output may have seen enough.
process.stdout.on("error", () => process.exit(1));
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  complain(error instanceof Error ? error.message : String(error));
  process.exitCode = exitCodeOf(error);
}
