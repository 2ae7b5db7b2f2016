import { ASK_POLICIES, type AskPolicy } from "../../index.ts";
import { type CommandContext, type CommandOption, textOption } from "../command.ts";

/** The option that sets which calls need approval, for commands that run agents. */
export const ASK_OPTIONS: Readonly<Record<"ask", CommandOption>> = {
  ask: {
    value: "CALLS",
    choices: ASK_POLICIES,
    what: "which calls need approval (default: writes, those that write files or run commands)",
  },
};

/** The value of `--ask`; default `writes`. */
export function askOption({ values }: Pick<CommandContext, "values">): AskPolicy {
  return (textOption(values, "ask") as AskPolicy | undefined) ?? "writes";
}
