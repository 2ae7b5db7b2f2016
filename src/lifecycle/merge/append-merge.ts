import type { SessionState } from "../../session/state/state.ts";
import type { MergeContext, MergeOutcome, MergeStrategy } from "./merge-strategy.ts";

/**
 * Appends all new turns of a branch after the parent's last one, together with the summaries, extension messages and edits of these
 * among them.
 *
 * - Variables that the branch changed get the branch's value; all others keep the parent's.
 * - Prompt, tools, skills, model, thinking level and compactions of the parent do not change.
 */
export class AppendMerge implements MergeStrategy {
  readonly name = "append";
  readonly turns = false;

  merge(_parent: SessionState, _branch: SessionState, context: MergeContext): MergeOutcome {
    return { entries: context.newEntries };
  }
}
