import type { SessionStore } from "../index.ts";
import type { NamedStoreOptions } from "./open-named-store.ts";
import type { Terminal } from "./terminal.ts";

/**
 * A command of the `skein` program: data, and one function that only uses its context.
 *
 * The help, the reference in docs/cli.md, shell completion and the errors about a command line are all made from the
 * data.
 */
export interface Command {
  /** The word after `skein`. */
  readonly name: string;
  /** A one-sentence description. */
  readonly summary: string;
  /** More about it, for its help. */
  readonly details?: string;
  /** The positional arguments, in order; optional ones come last. */
  readonly arguments: readonly CommandArgument[];
  /** The options, by the name after the two dashes; options that every command has are added. */
  readonly options: Readonly<Record<string, CommandOption>>;
  /** At least one command line, each with its purpose. */
  readonly examples: readonly CommandExample[];
  /** The fields of the object that `--json` prints. */
  readonly json: Readonly<Record<string, string>>;
  /** The store it uses: `existing` must exist, `made` is created if missing, `none` uses no store. */
  readonly store: "existing" | "made" | "none";
  /**
   * True if it only shows or checks what the store records. Such a command does not ask whether the store is trusted.
   */
  readonly readsOnly?: boolean;
  /** True if it runs tools. Their commands must not be able to read API keys from the program's environment. */
  readonly runsTools?: boolean;
  /** Resolves to the exit code: 0 for success, 1 for a failure or a finding, 2 for an invalid command line. */
  run(context: CommandContext): Promise<number>;
}

/** A positional argument of a command. */
export interface CommandArgument {
  readonly name: string;
  readonly what: string;
  /** True if it may be left out. */
  readonly optional?: boolean;
  /** True if it may be given several times; only for the last argument. */
  readonly repeated?: boolean;
  /** The only values it accepts. */
  readonly choices?: readonly string[];
}

/** An option of a command; one without a `value` is a switch. */
export interface CommandOption {
  readonly what: string;
  /** The name of its value in the help, in capitals; `FILE` and `DIRECTORY` are completed from the file system. */
  readonly value?: string;
  /** Its value if it is not given. */
  readonly default?: string;
  /** True if it may be given several times. */
  readonly repeated?: boolean;
  /** The only values it accepts. */
  readonly choices?: readonly string[];
}

/** An example command line and its purpose. */
export interface CommandExample {
  readonly line: string;
  readonly what: string;
}

/** The context that a command gets from the program. */
export interface CommandContext {
  /** The positional arguments: as many as the command allows. */
  readonly positionals: readonly string[];
  readonly values: CommandValues;
  /** True if the result is printed as JSON. */
  readonly json: boolean;
  /** The URL of `--store`, or of the default store. */
  readonly storeUrl: string;
  /** Prints the result in lines with colours. Texts of others must go through `printable` or `printableText` first. */
  readonly terminal: Terminal;
  /** Aborts when the user interrupts the program. */
  readonly signal: AbortSignal;
  /** Opens the store of `storeUrl`; the caller closes it. */
  openStore(): Promise<SessionStore>;
  /** Opens another store, and creates it if it is missing. Runs and approvals in an untrusted file have no effect. */
  openNamed(url: string, options?: NamedStoreOptions): Promise<SessionStore>;
  /** Prints one line of the result; control characters are removed. */
  print(text: string): void;
  /** Prints the result as JSON on one line; control characters are escaped. */
  printJson(value: unknown): void;
  /** Writes a piece of a result that is a file, unchanged; resolves when the stream has room for more. */
  write(text: string): Promise<void>;
  /** Asks the person at the terminal a yes-or-no question; null if no person can be asked. */
  confirm(question: string): Promise<boolean | null>;
  /** Prints progress on the standard error, at most once a second; does nothing without a terminal or with `--json`. */
  progress(text: string): void;
  /** Prints an error or another line that is not the result on the standard error. */
  fail(text: string): void;
}

/** The values of the options: as given, or their defaults. */
export type CommandValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** The text of an option; undefined if it was not given. */
export function textOption(values: CommandValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The texts of an option that may be given several times. */
export function textsOption(values: CommandValues, name: string): readonly string[] {
  return [values[name] ?? []].flat().filter((value): value is string => typeof value === "string");
}
