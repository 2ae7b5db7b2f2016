import type { Command, CommandOption } from "./command.ts";
import { nameOf, optionsOf } from "./parse-command-line.ts";

const WIDTH = 80;
/** How wide the left column of a list may be before what it explains goes below it. */
const LEFT_MAX = 24;

/** What `skein --help` says. */
export function programHelp(commands: readonly Command[]): string {
  return [
    "Usage: skein <command> [options]",
    "",
    "Skein keeps agent sessions: one durable log that forks, merges and compacts.",
    "",
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    "",
    ...wrap(
      "skein <command> --help says more. Every command takes --json, --no-color and --help; skein --version says which one this is.",
    ),
    "",
    ...wrap("Exit codes: 0 all is well; 1 it is not, or it cannot be done; 2 the command line cannot be understood."),
  ].join("\n");
}

/** What `skein <command> --help` says. */
export function commandHelp(command: Command): string {
  const given = command.arguments.map((argument) => [nameOf(argument), argument.what] as const);
  return [
    `Usage: ${usageOf(command)}`,
    "",
    ...wrap(command.summary),
    ...(command.details === undefined ? [] : ["", ...wrap(command.details)]),
    ...(given.length === 0 ? [] : ["", "Arguments:", ...columns(given)]),
    "",
    "Options:",
    ...columns(
      Object.entries(optionsOf(command)).map(([name, option]) => [optionLine(name, option), describe(option)]),
    ),
    "",
    command.examples.length === 1 ? "Example:" : "Examples:",
    ...command.examples.flatMap(({ line, what }) => [`  ${line}`, ...wrap(what, 6)]),
  ].join("\n");
}

/** How a command is written, without its options one by one. */
export function usageOf(command: Command): string {
  return ["skein", command.name, ...command.arguments.map(nameOf), "[options]"].join(" ");
}

/** An option as it is written. */
export function optionLine(name: string, { value }: CommandOption): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

/** What an option is for, what it takes, and what it is when it is left out. */
export function describe({ what, choices, default: initial, repeated }: CommandOption): string {
  const several = repeated === true ? "; may be given several times" : "";
  const taken = choices === undefined ? "" : `: ${choices.join(", ")}`;
  const left = initial === undefined ? "" : ` (default ${initial})`;
  return `${what}${taken}${several}${left}`;
}

function columns(rows: readonly (readonly [left: string, right: string])[]): string[] {
  const fitting = rows.map(([left]) => left.length).filter((length) => length <= LEFT_MAX);
  const width = Math.max(0, ...fitting) + 4;
  return rows.flatMap(([left, right]) => {
    const [first = "", ...rest] = wrap(right, width);
    const lead = `  ${left}`;
    return left.length > LEFT_MAX ? [lead, first, ...rest] : [lead.padEnd(width) + first.slice(width), ...rest];
  });
}

/** A text in lines that fit, each indented; a word that is too long has a line of its own. */
function wrap(text: string, indent = 0): string[] {
  const lead = " ".repeat(indent);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(lead + line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, lead + line];
}
