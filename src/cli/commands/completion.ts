import type { Command } from "../command.ts";
import { completionScript, SHELLS } from "../completion-script.ts";

/** Teaches a shell to complete command lines. @param commands all others of the program. */
export function completion(commands: readonly Command[]): Command {
  const own: Command = {
    name: "completion",
    summary: "Print a script that teaches a shell to complete skein command lines.",
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
