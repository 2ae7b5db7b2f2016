import type { Command } from "./command.ts";
import { describe, optionLine, usageOf } from "./help.ts";
import { GLOBAL_OPTIONS, nameOf, STORE_OPTION } from "./parse-command-line.ts";

/** The page docs/cli.md: every command with its arguments, options, examples and what `--json` prints. */
export function cliReference(commands: readonly Command[]): string {
  const globals = Object.entries({ store: STORE_OPTION, ...GLOBAL_OPTIONS });
  const parts = [
    "# The command line",
    "`skein <command> [options]`. This page is made from the commands themselves; after a change of one, `npx vitest run test/cli/reference.test.ts -u` makes it anew.",
    table(
      "command",
      commands.map(({ name, summary }) => [`[\`${name}\`](#${name})`, summary]),
    ),
    "## What all commands have in common",
    table(
      "option",
      globals.map(([name, option]) => [`\`${optionLine(name, option)}\``, describe(option)]),
    ),
    `${withoutStore(commands)}\n${COMMON}`,
    ...commands.map(section),
  ];
  return `${parts.join("\n\n")}\n`;
}

const COMMON = `- **Exit codes.** 0: all is well. 1: it is not (a finding, a failure), or it could not be done; a sentence on the error output
  says why. 2: the command line cannot be understood, and nothing was done.
- **Sessions** are named by their id, by a beginning or an end of it that no other session has (its last six characters, or
  \`…4b446e\`), or by \`last\`: the one with the latest message. Where a part fits several, the refusal names them.
- **Entries** are named by the number that \`tree\` shows before them, by their id, or by \`leaf\`.
- **Output.** The result goes to the standard output, everything else to the error output. Progress is told only where
  someone looks at it, and never with \`--json\`. Colours are for terminals: not in a pipe, with \`NO_COLOR\` or \`--no-color\`.
- **JSON.** \`--json\` prints one object on one line. Its fields, as listed below, stay; new ones may be added.
- **Hostile text.** Control characters and bidirectional marks of a transcript do not reach the terminal: they are shown as
  \`\ufffd\`, and escaped in JSON.
- **Pipes.** A reader that has seen enough (\`| head\`) ends the program quietly, with 0.`;

function withoutStore(commands: readonly Command[]): string {
  const names = commands.filter(({ store }) => store === "none").map(({ name }) => `\`${name}\``);
  return `- **\`--store\`** is no option of ${names.join(", ")}, which work on no store, or on those they are told.`;
}

function section(command: Command): string {
  const { name, summary, details, json, examples } = command;
  const options = Object.entries(command.options).map(
    ([option, spec]) => [`\`${optionLine(option, spec)}\``, describe(spec)] as const,
  );
  const given = command.arguments.map((argument) => [`\`${nameOf(argument)}\``, argument.what] as const);
  const fields = Object.entries(json).map(([field, what]) => [`\`${field}\``, what] as const);
  return [
    `## ${name}`,
    `\`${usageOf(command)}\``,
    summary,
    ...(details === undefined ? [] : [details]),
    ...(given.length === 0 ? [] : [table("argument", given)]),
    ...(options.length === 0 ? [] : [table("option", options)]),
    ["```sh", ...examples.map(({ line, what }) => `${line}   # ${what}`), "```"].join("\n"),
    ...(fields.length === 0 ? [] : [table("field of `--json`", fields)]),
  ].join("\n\n");
}

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const lines = rows.map(([left, right]) => `| ${left} | ${right.replaceAll("|", "\\|")} |`);
  return [`| ${title} | |`, "|---|---|", ...lines].join("\n");
}
