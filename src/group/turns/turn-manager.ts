import type { SessionTurn } from "../../session/state/state.ts";

/** One agent of a group. */
export interface GroupMember {
  readonly name: string;
  readonly role: string;
}

/** What a turn manager decides by. Everything in it is read from the log. */
export interface GroupView {
  /** What was said, oldest first. */
  readonly turns: readonly SessionTurn[];
  /** The agents of the group, in the order in which they joined. */
  readonly agents: readonly GroupMember[];
  /** Who had a go since the message that the group answers, in order; passing and refusing count. Default: who spoke. */
  readonly moves?: readonly string[];
  /** The limit that the run was given; the lower one of it and the manager's own counts. */
  readonly maxRounds?: number;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
}

/**
 * Decides who speaks next in a group.
 *
 * - With a view, the answer follows from the view alone, so that a group goes on in another process where it stopped.
 * - Without one, it follows from `recordTurns`, where each selection counts as a go of the one who was named, or from what
 *   a group told last with `recordProgress`.
 * - `filterVisible` may leave turns out and adds none.
 */
export interface TurnManager {
  register(agentName: string, role: string): void;
  /** The next agent's name; null ends the conversation. */
  selectNext(sessionId: string, view?: GroupView): string | null | Promise<string | null>;
  /** Whether the conversation is over. */
  isComplete(sessionId: string, view?: GroupView): boolean | Promise<boolean>;
  /** The turns that an agent may see, as far as the manner of taking turns is concerned. */
  filterVisible(turns: readonly SessionTurn[], options: { readonly agentName: string }): readonly SessionTurn[];
  /** Says what was said in a session, where the manager is used without a group. */
  recordTurns?(sessionId: string, turns: readonly SessionTurn[]): void;
  /**
   * Says how far a group has come in a session, as its log has it, and whether it is over there. Until it is told of
   * another message, a manager whose group is over says so, and selects nobody.
   */
  recordProgress?(sessionId: string, view: GroupView, over: boolean): void;
}
