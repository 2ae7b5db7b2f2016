import type { SessionState } from "../../session/state/state.ts";
import type { MergeContext, MergeOutcome, MergeStrategy } from "./merge-strategy.ts";

/**
 * Appends all of a branch's new turns after the parent's last, with the summaries and extension messages among them.
 *
 * - Variables that the branch changed have the branch's value; all others stay as the parent has them.
 * - Prompt, tools and skills, model and thinking level stay the parent's, and so does what a compaction hides.
 */
export class AppendMerge implements MergeStrategy {
  readonly name = "append";
  readonly turns = false;

  merge(_parent: SessionState, _branch: SessionState, context: MergeContext): MergeOutcome {
    return { entries: context.newEntries };
  }
}
