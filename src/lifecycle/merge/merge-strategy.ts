import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { SessionState, SessionTurn } from "../../session/state/state.ts";
import type { TurnInput } from "../turn-input.ts";

/** What a strategy can look at beside the two states. */
export interface MergeContext {
  /** The branch's turns since it parted from the parent, oldest first; some may have been merged before. */
  readonly newTurns: readonly SessionTurn[];
  /** The nodes that these turns are among: also variables, summaries, and what extensions added. */
  readonly newEntries: readonly Entry[];
  /** The ids among them that the parent has already; whatever is merged again is skipped. */
  readonly merged: ReadonlySet<string>;
  /** An entry of the parent, or null. */
  findInParent(entryId: string): Promise<Entry | null>;
}

/** What a strategy wants appended to the parent, in this order: entries, turns, variables. */
export interface MergeOutcome {
  /** Nodes of the branch, or others: messages, summaries, variables, and what extensions say. */
  readonly entries?: readonly (Entry | EntryDraft)[];
  /** Turns of the branch, or others. One without a `turnId` gets the same id each time this is merged. */
  readonly turns?: readonly TurnInput[];
  /** Variables to set. */
  readonly variables?: JsonObject;
  /** Variables to remove. */
  readonly unset?: readonly string[];
  /** What was asked for and is not merged. */
  readonly skipped?: readonly SkippedTurn[];
}

/** A turn that a merge did not append. */
export interface SkippedTurn {
  readonly turnId: string;
  /**
   * `present`: the parent has it already, as itself or in a summary. `unknown`: the branch has no such turn. `torn`: it is
   * half of a tool's call and result, and the other half was not chosen.
   */
  readonly reason: "present" | "unknown" | "torn";
}

/** A variable that parent and branch both changed since they parted, each to something else; undefined where it has none. */
export interface MergeConflict {
  readonly key: string;
  readonly parent: JsonValue | undefined;
  readonly branch: JsonValue | undefined;
  readonly base: JsonValue | undefined;
}

/** What a merge did, or would do. */
export interface MergeResult {
  /** The parent's state after it. */
  readonly state: SessionState;
  /** What was appended, in order: turns, summaries and variables, each with its id. */
  readonly appended: readonly EntryDraft[];
  readonly skipped: readonly SkippedTurn[];
  /** Variables that both sides changed; they have what the strategy decided. */
  readonly conflicts: readonly MergeConflict[];
}

/**
 * Decides what of a branch its parent gets.
 *
 * - `merge` returns what to append, or a whole state of the parent: what it has more than the one given is appended.
 * - It is not to change anything; a merge that is refused, or that is a dry run, has only asked it.
 * - What it throws is how the merge fails, and nothing is written.
 */
export interface MergeStrategy {
  /** Tells the variables and new turns of two strategies apart when both merge the same branch. */
  readonly name?: string;
  /** False when the states may come without their turns, which makes a merge cost what is new. */
  readonly turns?: boolean;
  merge(
    parent: SessionState,
    branch: SessionState,
    context: MergeContext,
  ): MergeOutcome | SessionState | Promise<MergeOutcome | SessionState>;
}
