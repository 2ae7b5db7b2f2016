import type { Command, CommandOption } from "../command.ts";
import { optionsOf } from "../parse-command-line.ts";

/** The command that prints a shell's completion script. @param commands all other commands. */
export function completion(commands: readonly Command[]): Command {
  const own: Command = {
    name: "completion",
    summary: "Print a completion script for a shell.",
    arguments: [{ name: "shell", choices: SHELLS, what: "bash, zsh or fish" }],
    options: {},
    examples: [
      { line: "source <(skein completion bash)", what: "in ~/.bashrc; the same with zsh in ~/.zshrc" },
      { line: "skein completion fish > ~/.config/fish/completions/skein.fish", what: "for fish" },
    ],
    json: { shell: "the shell", script: "the script" },
    store: "none",
    async run(context) {
      const shell = context.positionals[0] as (typeof SHELLS)[number];
      const script = completionScript(shell, [...commands, own]);
      if (context.json) context.printJson({ shell, script });
      else await context.write(script);
      return 0;
    },
  };
  return own;
}

/** The shells with a completion script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** The completion script of a shell: commands, options and their values. */
function completionScript(shell: (typeof SHELLS)[number], commands: readonly Command[]): string {
  if (shell === "fish") return fishScript(commands);
  // zsh can run a completion script for bash.
  const before =
    shell === "zsh"
      ? "#compdef skein\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
      : "";
  return before + bashScript(commands);
}

function bashScript(commands: readonly Command[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  return `_skein() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names} help" -- "$current"))
    return
  fi
  case "$command:$previous" in
${commands.flatMap(bashValues).join("\n")}
  esac
  case "$command" in
    help) COMPREPLY=($(compgen -W "${names}" -- "$current")) ;;
${commands.map(bashWords).join("\n")}
  esac
}
complete -o default -F _skein skein
`;
}

/** The completions of an option's value. */
function bashValues(command: Command): string[] {
  return Object.entries(optionsOf(command)).flatMap(([name, option]) => {
    const { value, choices } = option;
    const pattern = `    ${command.name}:--${name})`;
    if (value === undefined) return [];
    if (choices !== undefined)
      return [`${pattern} COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$current")); return ;;`];
    // No completions for a free text; for paths, the shell completes files itself.
    return isPath(option) ? [`${pattern} return ;;`] : [`${pattern} compopt +o default 2>/dev/null; return ;;`];
  });
}

function bashWords(command: Command): string {
  const words = [...optionWords(command), ...command.arguments.flatMap(({ choices }) => choices ?? [])];
  return `    ${command.name}) COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$current")) ;;`;
}

function fishScript(commands: readonly Command[]): string {
  const lines = ["complete -c skein -f"];
  for (const command of commands) {
    lines.push(`complete -c skein -n __fish_use_subcommand -a ${command.name} -d ${quoted(command.summary)}`);
    const here = `complete -c skein -n '__fish_seen_subcommand_from ${command.name}'`;
    for (const [name, option] of Object.entries(optionsOf(command))) {
      const values =
        option.choices === undefined
          ? isPath(option)
            ? " -r -F"
            : " -x"
          : ` -x -a ${quoted(option.choices.join(" "))}`;
      lines.push(`${here} -l ${name}${option.value === undefined ? "" : values} -d ${quoted(option.what)}`);
    }
    for (const { choices } of command.arguments)
      if (choices !== undefined) lines.push(`${here} -a ${quoted(choices.join(" "))}`);
  }
  return `${lines.join("\n")}\n`;
}

function optionWords(command: Command): string[] {
  return Object.keys(optionsOf(command)).map((name) => `--${name}`);
}

function isPath({ value }: CommandOption): boolean {
  return value === "FILE" || value === "DIRECTORY";
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
