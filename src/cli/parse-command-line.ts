import { parseArgs } from "node:util";
import { SessionError } from "../index.ts";
import { show } from "../session/errors.ts";
import type { Command, CommandArgument, CommandOption, CommandValues } from "./command.ts";
import { suggestion } from "../internal/nearest.ts";

/** The options of every command. */
export const GLOBAL_OPTIONS: Readonly<Record<string, CommandOption>> = {
  json: { what: "print the result as JSON, on one line" },
  "no-color": { what: "print without colours; also with NO_COLOR, and in a pipe" },
  help: { what: "print this help" },
};

/** The option of every command that uses a store. */
export const STORE_OPTION: CommandOption = {
  value: "URL",
  what: "the store: memory:, jsonl:./directory, sqlite:./file.db, or the URL of a server (default: $SKEIN_STORE, else skein.db in $SKEIN_HOME or ~/.skein)",
};

/** The option of every command that opens a store named by the user. */
export const TRUST_STORE_OPTION: CommandOption = {
  what: "trust the store from now on: the runs, approvals and sandboxes that it records count",
};

/** The option of every command that creates files or stores. */
export const CREATE_OPTION: CommandOption = {
  what: "also create missing parent directories; without it, they are an error",
};

const STORE_OPTIONS = { store: STORE_OPTION, "trust-store": TRUST_STORE_OPTION };

/** A parsed command line. */
export interface ParsedCommandLine {
  readonly positionals: readonly string[];
  readonly values: CommandValues;
}

/** All options of a command: its own, those of the store, and the global ones. */
export function optionsOf(command: Command): Readonly<Record<string, CommandOption>> {
  const making = command.store === "made" ? { create: CREATE_OPTION } : {};
  return { ...command.options, ...(command.store === "none" ? {} : STORE_OPTIONS), ...making, ...GLOBAL_OPTIONS };
}

/** Finds the command's name, which may follow global options; returns it and the other arguments. */
export function splitCommandLine(args: readonly string[]): {
  readonly name: string | null;
  readonly rest: readonly string[];
} {
  const { tokens } = tokensOf(args, { ...STORE_OPTIONS, ...GLOBAL_OPTIONS });
  const first = tokens.find(({ kind }) => kind === "positional");
  if (first === undefined) return { name: null, rest: args };
  return { name: args[first.index] ?? null, rest: args.toSpliced(first.index, 1) };
}

/** Parses a command line. @throws {SessionError} `INVALID_OPTION`, with a sentence that says what to write instead. */
export function parseCommandLine(command: Command, args: readonly string[]): ParsedCommandLine {
  const options = optionsOf(command);
  const { tokens } = tokensOf(args, options);
  const values: Record<string, string | boolean | readonly string[] | undefined> = Object.create(null);
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = token.rawName === "-h" ? "help" : token.name;
    const option =
      Object.hasOwn(options, name) && (token.rawName.startsWith("--") || name === "help") ? options[name] : undefined;
    if (option === undefined) throw unknownOption(command, token.rawName);
    const value = valueGiven(command, option, token);
    values[name] = option.repeated === true ? [...((values[name] as string[]) ?? []), value as string] : value;
  }
  if (values["help"] !== true) checkArguments(command, positionals);
  for (const [name, option] of Object.entries(options)) values[name] ??= option.default;
  return { positionals, values };
}

function tokensOf(args: readonly string[], options: Readonly<Record<string, CommandOption>>) {
  const types = Object.entries(options).map(([name, { value }]) => [
    name,
    { type: value === undefined ? ("boolean" as const) : ("string" as const) },
  ]);
  return parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    // The errors of Node's parser name neither the command nor a remedy.
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
}

type OptionToken = Extract<ReturnType<typeof tokensOf>["tokens"][number], { kind: "option" }>;

function valueGiven(command: Command, option: CommandOption, token: OptionToken): string | true {
  const { rawName, value, inlineValue } = token;
  if (option.value === undefined) {
    if (value === undefined) return true;
    throw refused(command, `${rawName} takes no value; write it alone`);
  }
  if (value === undefined || value === "")
    throw refused(command, `${rawName} needs a value: ${rawName} ${option.value}`);
  if (inlineValue === false && value.length > 1 && value.startsWith("-")) {
    throw refused(
      command,
      `${rawName} needs a value before ${show(value)}; if that is the value, write ${rawName}=${value}`,
    );
  }
  checkChoice(command, rawName, value, option.choices);
  return value;
}

function checkArguments(command: Command, given: readonly string[]): void {
  const wanted = command.arguments;
  const missing = wanted.find((argument, index) => argument.optional !== true && (given[index] ?? "") === "");
  if (missing !== undefined) throw refused(command, `${command.name} needs ${nameOf(missing)}`);
  const extra = wanted.at(-1)?.repeated === true ? undefined : given[wanted.length];
  if (extra !== undefined)
    throw refused(command, `${command.name} accepts no further argument, but got ${show(extra)}`);
  for (const [index, value] of given.entries()) {
    const argument = wanted[Math.min(index, wanted.length - 1)];
    if (argument !== undefined) checkChoice(command, nameOf(argument), value, argument.choices);
  }
}

/** An argument as a usage line shows it. */
export function nameOf({ name, optional, repeated }: CommandArgument): string {
  const dots = repeated === true ? "…" : "";
  return optional === true ? `[${name}]${dots}` : `<${name}>${dots}`;
}

function checkChoice(command: Command, name: string, value: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(value)) return;
  throw refused(command, `${name} is ${show(value)}; use ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`);
}

function unknownOption(command: Command, rawName: string): SessionError {
  const near = suggestion(rawName.replace(/^-+/, ""), Object.keys(optionsOf(command)), "--");
  return refused(command, `${command.name} has no option ${rawName};${near || " its help lists them"}`);
}

function refused(command: Command, reason: string): SessionError {
  const end = reason.endsWith("?") ? "" : ".";
  return new SessionError("INVALID_OPTION", `${reason}${end} See skein ${command.name} --help.`);
}
