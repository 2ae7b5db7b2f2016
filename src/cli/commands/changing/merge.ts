import { AppendMerge } from "../../../lifecycle/merge/append-merge.ts";
import { SessionError, type SessionHead, type SessionStore } from "../../../index.ts";
import type { MergeResult, MergeStrategy } from "../../../lifecycle/merge/merge-strategy.ts";
import { SelectiveMerge } from "../../../lifecycle/merge/selective-merge.ts";
import { SummaryMerge } from "../../../lifecycle/merge/summary-merge.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../../command.ts";
import { MODEL_OPTION } from "../../options/option-values.ts";
import { modelFor } from "../../options/session-model.ts";
import { openManager } from "../../open-manager.ts";
import { entryIfAny, findSession } from "../../options/session-reference.ts";
import { counted, printable } from "../../terminal.ts";

/** Merges a branch into its parent. */
export const merge: Command = {
  name: "merge",
  summary: "Append the new turns of a fork to the session it was forked from.",
  arguments: [
    { name: "parent", what: "the session to append to; named as in show" },
    { name: "branch", what: "the fork" },
  ],
  options: {
    strategy: {
      value: "NAME",
      default: "append",
      choices: ["append", "selective", "summary"],
      what: "append all new turns, only those of --turn, or one summary",
    },
    turn: {
      value: "ENTRY",
      repeated: true,
      what: "a turn to append, with --strategy selective: its number in skein tree, or its id",
    },
    model: {
      ...MODEL_OPTION,
      what: "the model that writes the summary, with --strategy summary (default: the branch's last model)",
    },
    "dry-run": { what: "only print what would be done" },
  },
  examples: [
    { line: "skein merge 0199a3 0199b7 --dry-run", what: "see what a merge would append" },
    { line: "skein merge 0199a3 0199b7 --strategy summary", what: "append one summary instead of every turn" },
  ],
  json: {
    sessionId: "the parent's id",
    dryRun: "true if nothing was written",
    appended: "the appended entries, in order: id and type",
    skipped: "turns that were not appended: turnId and reason (present, unknown, torn)",
    conflicts: "variables that both sides changed: key, parent, branch, base",
    version: "the number of entries in the parent",
  },
  store: "existing",
  async run(context) {
    const [parent = "", branch = ""] = context.positionals;
    await using store = await context.openStore();
    await using manager = await openManager(store);
    const parentId = (await findSession(store, parent)).header.id;
    const branchHead = await findSession(store, branch);
    const strategy = await strategyOf(context, store, branchHead);
    const dryRun = context.values["dry-run"] === true;
    const result = await manager.merge(parentId, branchHead.header.id, { strategy, dryRun, turns: false });
    if (context.json) {
      const appended = result.appended.map(({ id, type }) => ({ id, type }));
      const { skipped, conflicts, state } = result;
      context.printJson({ sessionId: parentId, dryRun, appended, skipped, conflicts, version: state.version });
    } else print(context, parentId, result, dryRun);
    return 0;
  },
};

/** The ids of the turns of `--turn`. A name that is not found is kept, so that the merge reports it as unknown. */
function turnsOf({ values }: CommandContext, store: SessionStore, branch: SessionHead): Promise<readonly string[]> {
  const named = textsOption(values, "turn").map(async (turn) => (await entryIfAny(store, branch, turn))?.id ?? turn);
  return Promise.all(named);
}

async function strategyOf(context: CommandContext, store: SessionStore, branch: SessionHead): Promise<MergeStrategy> {
  const { values, signal } = context;
  const turns = await turnsOf(context, store, branch);
  const name = textOption(values, "strategy");
  if ((name === "selective") !== turns.length > 0) {
    throw new SessionError("INVALID_OPTION", "--strategy selective and --turn belong together; give both or neither.");
  }
  if (name === "selective") return new SelectiveMerge(turns);
  if (name === "append") return new AppendMerge();
  return new SummaryMerge({ model: await modelFor(store, branch, textOption(values, "model")), signal });
}

function print({ terminal }: CommandContext, parentId: string, result: MergeResult, dryRun: boolean): void {
  for (const { id, type } of result.appended) terminal.line(`+ ${printable(type)} ${printable(id ?? "", 512)}`);
  for (const { turnId, reason } of result.skipped) terminal.line(`skipped: ${printable(turnId, 512)}: ${reason}`);
  for (const { key } of result.conflicts) terminal.line(`both changed: ${printable(key)}; the branch's value is used`);
  const verb = dryRun ? "would get" : "got";
  terminal.line(`Session ${printable(parentId, 512)} ${verb} ${counted(result.appended.length, "entry", "entries")}.`);
}
