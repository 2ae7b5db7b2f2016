import { SessionError, UNASKED, type Unasked } from "../../index.ts";
import { type CommandContext, type CommandOption, textOption } from "../command.ts";

const OLDER: Readonly<Record<string, Unasked>> = { none: "reads", writes: "writes", all: "all" };

/** The options that say which calls run without a question, for commands that run agents. */
export const UNASKED_OPTIONS: Readonly<Record<"unasked" | "approve", CommandOption>> = {
  unasked: {
    value: "CALLS",
    choices: UNASKED,
    what: "which calls run without a question, reads where it is not given",
  },
  approve: {
    value: "CALLS",
    choices: Object.keys(OLDER),
    what: "the older word for --unasked, whose none is reads; goes away with the next version",
  },
};

/** What runs without a question, as a command line says it. The older option is read still, and says so. */
export function unaskedOption({ values, fail }: Pick<CommandContext, "values" | "fail">): Unasked {
  const given = textOption(values, "unasked") as Unasked | undefined;
  const older = textOption(values, "approve");
  if (older === undefined) return given ?? "reads";
  if (given !== undefined) throw new SessionError("INVALID_OPTION", "Give --unasked or --approve, not both.");
  const unasked = OLDER[older] ?? "reads";
  fail(`--approve ${older} is --unasked ${unasked} now; the older option goes away with the next version.`);
  return unasked;
}
