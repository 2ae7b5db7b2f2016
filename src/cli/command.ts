import type { ParseArgsConfig } from "node:util";

/** A command of the `skein` program: data, and one function that touches nothing but its context. */
export interface Command {
  readonly summary: string;
  /** What to write after `skein`. */
  readonly usage: string;
  /** One line for each option. */
  readonly help: readonly string[];
  readonly options: NonNullable<ParseArgsConfig["options"]>;
  /** Resolves to the exit code: 0 when all is well, 1 when it is not, 2 when the command cannot be understood. */
  run(context: CommandContext): Promise<number>;
}

/** What a command works with. */
export interface CommandContext {
  readonly positionals: readonly string[];
  readonly values: CommandValues;
  /** Aborts when the user interrupts the program. */
  readonly signal: AbortSignal;
  /** Writes one line of the result; what could steer a terminal is taken out. */
  print(text: string): void;
  /** Writes the result as JSON, on one line that cannot steer a terminal either. */
  printJson(value: unknown): void;
  /** Says how far it is, on the error output and not too often. */
  progress(text: string): void;
  /** Says why the command cannot be done, on the error output. */
  fail(text: string): void;
}

/** The options as they were given. */
export type CommandValues = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** An option's text, or undefined when it was not given. */
export function textOption(values: CommandValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The texts of an option that may be given several times. */
export function textsOption(values: CommandValues, name: string): readonly string[] {
  return [values[name] ?? []].flat().filter((value): value is string => typeof value === "string");
}
