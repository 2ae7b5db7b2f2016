import type { SessionTurn } from "../../session/state/state.ts";

/** One agent of a group. */
export interface GroupMember {
  readonly name: string;
  readonly role: string;
}

/** The input of a turn manager; everything in it comes from the log. */
export interface GroupView {
  /** The turns, oldest first. */
  readonly turns: readonly SessionTurn[];
  /** The members of the group, in the order in which they joined. */
  readonly agents: readonly GroupMember[];
  /**
   * The agents that took a turn since the message that the group answers, in order, including those that passed or
   * refused. Default: the speakers of the turns.
   */
  readonly moves?: readonly string[];
  /** The round limit of the run; the lower one of this and the manager's own applies. */
  readonly maxRounds?: number;
  /** Aborts when the answer is no longer needed. */
  readonly signal?: AbortSignal;
}

/**
 * Decides who speaks next in a group.
 *
 * - With a view, the decision depends on the view only, so that a group can continue in another process.
 * - Without one, it depends on `recordTurns`, where each selection counts as a turn of the selected agent, or on the
 *   last `recordProgress`.
 * - `filterVisible` may remove turns but never adds any.
 */
export interface TurnManager {
  register(agentName: string, role: string): void;
  /** The name of the next speaker; null ends the conversation. */
  selectNext(sessionId: string, view?: GroupView): string | null | Promise<string | null>;
  /** Whether the conversation has ended. */
  isComplete(sessionId: string, view?: GroupView): boolean | Promise<boolean>;
  /** The turns that an agent may see under this way of taking turns. */
  filterVisible(turns: readonly SessionTurn[], options: { readonly agentName: string }): readonly SessionTurn[];
  /** Records the turns of a session, if the manager is used without a group. */
  recordTurns?(sessionId: string, turns: readonly SessionTurn[]): void;
  /**
   * Records the progress of a group from its log, and whether it has finished. A manager whose group has finished
   * selects nobody until it gets another message.
   */
  recordProgress?(sessionId: string, view: GroupView, over: boolean): void;
}
