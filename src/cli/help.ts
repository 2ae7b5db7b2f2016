import type { Command, CommandOption } from "./command.ts";
import { nameOf, optionsOf } from "./parse-command-line.ts";

/** The width of the help without a terminal, and its maximum: longer lines are hard to read. */
const WIDTH = 80;
const WIDTH_MAX = 100;
/** The maximum width of a list's left column; a longer left text gets its own line. */
const LEFT_MAX = 24;

/** The text of `skein --help` for a terminal of the given width. */
export function programHelp(commands: readonly Command[], width = WIDTH): string {
  const text = (words: string): string[] => wrap(words, { width });
  return [
    "Usage: skein <command> [options]",
    "",
    ...text("Skein keeps agent sessions: one durable log that forks, merges and compacts."),
    "",
    ...listLines(
      commands.map(({ name, summary }) => [name, summary]),
      width,
    ),
    "",
    ...text(
      "For the options of a command, see skein <command> --help. Every command accepts --json, --no-color and --help; skein --version prints the version.",
    ),
    "",
    ...text("Exit codes: 0 success; 1 a failure or a finding; 2 an invalid command line."),
  ].join("\n");
}

/** The text of `skein <command> --help` for a terminal of the given width. */
export function commandHelp(command: Command, width = WIDTH): string {
  const given = command.arguments.map((argument) => [nameOf(argument), argument.what] as const);
  const options = Object.entries(optionsOf(command));
  return [
    ...wrap(`Usage: ${usageOf(command)}`, { width }),
    "",
    ...wrap(command.summary, { width }),
    ...(command.details === undefined ? [] : ["", ...wrap(command.details, { width })]),
    ...(given.length === 0 ? [] : ["", "Arguments:", ...listLines(given, width)]),
    "",
    "Options:",
    ...listLines(
      options.map(([name, option]) => [optionLine(name, option), describe(option)]),
      width,
    ),
    "",
    command.examples.length === 1 ? "Example:" : "Examples:",
    ...command.examples.flatMap(({ line, what }) => [...shellLines(line, width), ...wrap(what, { width, indent: 6 })]),
  ].join("\n");
}

/** The usage line of a command. */
export function usageOf(command: Command): string {
  return ["skein", command.name, ...command.arguments.map(nameOf), "[options]"].join(" ");
}

/** An option with the placeholder of its value. */
export function optionLine(name: string, { value }: CommandOption): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

/** The description of an option, its choices, and its default. */
export function describe({ what, choices, default: initial, repeated }: CommandOption): string {
  const several = repeated === true ? "; may be given several times" : "";
  const taken = choices === undefined ? "" : `: ${choices.join(", ")}`;
  const left = initial === undefined ? "" : ` (default ${initial})`;
  return `${what}${taken}${several}${left}`;
}

/** Formats a list in two columns that fit a terminal; a left text that is too wide gets its own line. */
export function listLines(rows: readonly (readonly [left: string, right: string])[], width = WIDTH): string[] {
  const leftMax = Math.min(LEFT_MAX, Math.floor(width / 3));
  const fitting = rows.map(([left]) => left.length).filter((length) => length <= leftMax);
  const indent = Math.max(0, ...fitting) + 4;
  return rows.flatMap(([left, right]) => {
    const [first = "", ...rest] = wrap(right, { width, indent });
    const lead = `  ${left}`;
    return left.length > leftMax ? [lead, first, ...rest] : [lead.padEnd(indent) + first.slice(indent), ...rest];
  });
}

/** Wraps a command line with backslashes, so that a shell reads it as one. */
function shellLines(line: string, width: number): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const [first = "", ...rest] = wrapWords(words, Math.min(width, WIDTH_MAX) - 6);
  return [first, ...rest.map((each) => `  ${each}`)].map((each, at) => `  ${each}${at < rest.length ? " \\" : ""}`);
}

/** Wraps and indents a text; a word that is too long gets its own line. */
export function wrap(
  text: string,
  { width, indent = 0 }: { readonly width: number; readonly indent?: number },
): string[] {
  return wrapWords(text.split(" "), Math.min(width, WIDTH_MAX) - indent).map((line) => " ".repeat(indent) + line);
}

function wrapWords(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}
