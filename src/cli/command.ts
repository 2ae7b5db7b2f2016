import type { SessionStore } from "../index.ts";
import type { NamedStoreOptions } from "./open-named-store.ts";
import type { Terminal } from "./terminal.ts";

/**
 * A command of the `skein` program: data, and one function that touches nothing but its context.
 *
 * Help, the reference in docs/cli.md, shell completion and the refusal of a wrong command line all come from the data.
 */
export interface Command {
  /** What to write after `skein`. */
  readonly name: string;
  /** What it does, in one sentence. */
  readonly summary: string;
  /** More that a reader of its help should know. */
  readonly details?: string;
  /** What is written without a name, in order; those that may be left out come last. */
  readonly arguments: readonly CommandArgument[];
  /** By the name that follows the two dashes; those that every command has are added. */
  readonly options: Readonly<Record<string, CommandOption>>;
  /** At least one command line, each with what it is for. */
  readonly examples: readonly CommandExample[];
  /** What each field of the object that `--json` prints holds. */
  readonly json: Readonly<Record<string, string>>;
  /** Which store it works on: one that must be there, one that is made if it is not, or none. */
  readonly store: "existing" | "made" | "none";
  /** Whether it only shows or checks what the store records, so that it does not matter whose store it is. */
  readonly readsOnly?: boolean;
  /** Whether it runs tools, whose commands must not read the program's keys. */
  readonly runsTools?: boolean;
  /** Resolves to the exit code: 0 when all is well, 1 when it is not, 2 when the command cannot be understood. */
  run(context: CommandContext): Promise<number>;
}

/** Something that is written after a command without a name. */
export interface CommandArgument {
  readonly name: string;
  readonly what: string;
  /** May be left out. */
  readonly optional?: boolean;
  /** May be given several times; the last argument only. */
  readonly repeated?: boolean;
  /** The only values it takes. */
  readonly choices?: readonly string[];
}

/** An option of a command; one without a `value` is a switch. */
export interface CommandOption {
  readonly what: string;
  /** What its value is called in the help, in capitals; `FILE` and `DIRECTORY` are completed from the file system. */
  readonly value?: string;
  /** What it is when it is not given. */
  readonly default?: string;
  /** May be given several times. */
  readonly repeated?: boolean;
  /** The only values it takes. */
  readonly choices?: readonly string[];
}

/** A command line as it may be typed, and what it is for. */
export interface CommandExample {
  readonly line: string;
  readonly what: string;
}

/** What a command works with. */
export interface CommandContext {
  /** What was given without a name: as many as the command's arguments allow. */
  readonly positionals: readonly string[];
  readonly values: CommandValues;
  /** Whether the result is to be JSON. */
  readonly json: boolean;
  /** The store that was named, or the default one. */
  readonly storeUrl: string;
  /** The result as lines with colours; texts of others go through `printable` or `printableText` first. */
  readonly terminal: Terminal;
  /** Aborts when the user interrupts the program. */
  readonly signal: AbortSignal;
  /** Opens the store that was named; whoever opens it closes it. */
  openStore(): Promise<SessionStore>;
  /** Opens another store, made if it is not there; one in files that is not its user's counts as words. */
  openNamed(url: string, options?: NamedStoreOptions): Promise<SessionStore>;
  /** Writes one line of the result; what could steer a terminal is taken out. */
  print(text: string): void;
  /** Writes the result as JSON, on one line that cannot steer a terminal either. */
  printJson(value: unknown): void;
  /** Writes a part of a result that is a file and not lines, as it is; resolves when there is room for more. */
  write(text: string): Promise<void>;
  /** Whether whoever sits at the terminal says yes; null where nobody can be asked. */
  confirm(question: string): Promise<boolean | null>;
  /** Says how far it is, on the error output and not too often; nothing where nobody looks or `--json` is given. */
  progress(text: string): void;
  /** Says why the command cannot be done, or something else that is not the result, on the error output. */
  fail(text: string): void;
}

/** The options as they were given, or their defaults. */
export type CommandValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** An option's text, or undefined when it was not given. */
export function textOption(values: CommandValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The texts of an option that may be given several times. */
export function textsOption(values: CommandValues, name: string): readonly string[] {
  return [values[name] ?? []].flat().filter((value): value is string => typeof value === "string");
}
