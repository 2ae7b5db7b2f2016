import type { Command } from "./command.ts";
import { describe, optionLine, usageOf } from "./help.ts";
import { GLOBAL_OPTIONS, nameOf, STORE_OPTION } from "./parse-command-line.ts";

/** The page docs/cli.md: every command with its arguments, options, examples and what `--json` prints. */
export function cliReference(commands: readonly Command[]): string {
  const globals = Object.entries({ store: STORE_OPTION, ...GLOBAL_OPTIONS });
  const parts = [
    "# The command line",
    "`skein <command> [options]`. This page is generated from the definitions of the commands. After a change of one, run `npx vitest run test/cli/reference.test.ts -u`.",
    table(
      "command",
      commands.map(({ name, summary }) => [`[\`${name}\`](#${name})`, summary]),
    ),
    "## Common to all commands",
    table(
      "option",
      globals.map(([name, option]) => [`\`${optionLine(name, option)}\``, describe(option)]),
    ),
    `${withoutStore(commands)}\n${COMMON}`,
    ...commands.map(section),
  ];
  return `${parts.join("\n\n")}\n`;
}

const COMMON = `- **Without a command**, \`skein\` shows on a terminal how many sessions the default store has, your servers, and which other programs
  have sessions on this machine. It opens no file of theirs. In a pipe and with \`--json\` it prints the help.
- **Exit codes.** 0: success. 1: a failure or a finding; a sentence on the standard error says why. 2: the command line
  is invalid, and nothing was done.
- **Sessions** are named by their id, by a prefix or a suffix of it that no other session has (its last six characters, or
  \`…4b446e\`), or by \`last\`: the session with the latest message. If a part fits several sessions, the error lists them.
- **Entries** are named by the number that \`tree\` shows before them, by their id, or by \`leaf\`.
- **Output.** The result goes to the standard output, everything else to the standard error. Progress is only printed to a
  terminal, and never with \`--json\`. Colours are only used on a terminal, not with \`NO_COLOR\` or \`--no-color\`.
- **JSON.** \`--json\` prints one object on one line. The fields listed below are stable; new ones may be added.
- **Control characters.** Control characters and bidirectional marks in texts never reach the terminal: they are printed as
  \`\ufffd\`, and escaped in JSON.
- **Pipes.** If the reader of a pipe closes it (\`| head\`), the program ends silently with 0.`;

function withoutStore(commands: readonly Command[]): string {
  const names = commands.filter(({ store }) => store === "none").map(({ name }) => `\`${name}\``);
  return `- **\`--store\`** is not an option of ${names.join(", ")}: they use no store, or name theirs with other options.`;
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
