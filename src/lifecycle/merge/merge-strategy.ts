import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { SessionState, SessionTurn } from "../../session/state/state.ts";
import type { TurnInput } from "../turn-input.ts";

/** The input of a strategy beside the two states. */
export interface MergeContext {
  /** The branch's turns after the fork, oldest first; some may already be merged. */
  readonly newTurns: readonly SessionTurn[];
  /** All nodes of the branch after the fork: these turns, variables, summaries, and entries of extensions. */
  readonly newEntries: readonly Entry[];
  /** The ids of those that the parent already has; they are skipped if they are merged again. */
  readonly merged: ReadonlySet<string>;
  /** Finds an entry of the parent; null if there is none. */
  findInParent(entryId: string): Promise<Entry | null>;
}

/** The result of a strategy: what to append to the parent, in this order: entries, turns, variables. */
export interface MergeOutcome {
  /** Nodes of the branch, or new ones: messages, summaries, variables, and messages of extensions. */
  readonly entries?: readonly (Entry | EntryDraft)[];
  /** Turns of the branch, or new ones. A turn without a `turnId` gets a deterministic id. */
  readonly turns?: readonly TurnInput[];
  /** Variables to set. */
  readonly variables?: JsonObject;
  /** Variables to remove. */
  readonly unset?: readonly string[];
  /** Requested turns that are not merged. */
  readonly skipped?: readonly SkippedTurn[];
}

/** A turn that a merge did not append. */
export interface SkippedTurn {
  readonly turnId: string;
  /**
   * `present`: the parent already has it, as a turn or in a summary. `unknown`: the branch has no such turn. `torn`: it is part
   * of a tool call with its results, and the other part was not selected.
   */
  readonly reason: "present" | "unknown" | "torn";
}

/** A variable that parent and branch have both changed since the fork, to different values; undefined for a side without it. */
export interface MergeConflict {
  readonly key: string;
  readonly parent: JsonValue | undefined;
  readonly branch: JsonValue | undefined;
  readonly base: JsonValue | undefined;
}

/** The result of a merge, or its preview. */
export interface MergeResult {
  /** The parent's state after the merge. */
  readonly state: SessionState;
  /** The appended entries in order: turns, summaries and variables, each with its id. */
  readonly appended: readonly EntryDraft[];
  readonly skipped: readonly SkippedTurn[];
  /** Variables that both sides changed; they have the value that the strategy chose. */
  readonly conflicts: readonly MergeConflict[];
}

/**
 * Decides what a merge appends to the parent.
 *
 * - `merge` returns what to append, or a new state of the parent, whose additions are appended.
 * - It must not change anything: in a dry run or a refused merge it is called, too.
 * - If it throws, the merge fails with that error and nothing is written.
 */
export interface MergeStrategy {
  /** Used in the ids of variables and new turns, so that two strategies can merge the same branch. */
  readonly name?: string;
  /** False if the strategy does not need the turns of the states; the cost of a merge then depends only on the new entries. */
  readonly turns?: boolean;
  merge(
    parent: SessionState,
    branch: SessionState,
    context: MergeContext,
  ): MergeOutcome | SessionState | Promise<MergeOutcome | SessionState>;
}
