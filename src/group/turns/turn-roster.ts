import { SessionError, show } from "../../session/errors.ts";
import { checkName } from "../../session/id.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import type { GroupMember, GroupView, TurnManager } from "./turn-manager.ts";

/** The number of sessions for which a turn manager keeps records; the oldest are dropped first. */
export const RECORDED_SESSIONS_MAX = 1000;

/** A view with all fields. */
export type WholeView = Required<Omit<GroupView, "signal">>;

interface Recorded {
  readonly turns: readonly SessionTurn[];
  /** The agents selected since the last user message. */
  readonly selected: readonly string[];
  /** Whether the group has finished in that session. */
  readonly over: boolean;
}

/**
 * A turn manager that knows its agents and keeps records for calls without a view. A subclass defines what a round is
 * and who speaks next.
 */
export abstract class TurnRoster implements TurnManager {
  readonly #members = new Map<string, GroupMember>();
  readonly #recorded = new Map<string, Recorded>();
  readonly #maxRounds: number;

  constructor(maxRounds: number) {
    this.#maxRounds = checkRounds(maxRounds);
  }

  /** The number of completed rounds. */
  protected abstract roundsOf(view: WholeView): number;

  /** The next speaker; null ends the conversation. */
  protected abstract choose(view: WholeView, signal: AbortSignal | undefined): string | null | Promise<string | null>;

  register(agentName: string, role: string): void {
    checkName(agentName, "an agent");
    if (typeof role !== "string") {
      throw new SessionError("INVALID_OPTION", `The role of ${show(agentName)} is not a text.`);
    }
    this.#members.set(agentName, { name: agentName, role });
  }

  async selectNext(sessionId: string, given?: GroupView): Promise<string | null> {
    const view = this.#view(sessionId, given);
    const name = this.#isOver(view) ? null : await this.choose(view, given?.signal);
    if (given === undefined && name !== null) {
      const before = this.#recorded.get(sessionId) ?? NOTHING;
      this.#remember(sessionId, { ...before, selected: [...before.selected, name] });
    }
    return name;
  }

  async isComplete(sessionId: string, given?: GroupView): Promise<boolean> {
    return this.#isOver(this.#view(sessionId, given));
  }

  filterVisible(turns: readonly SessionTurn[], _options: { readonly agentName: string }): readonly SessionTurn[] {
    return turns;
  }

  recordTurns(sessionId: string, turns: readonly SessionTurn[]): void {
    const before = this.#recorded.get(sessionId);
    const spoken = speakersIn(turns);
    const sameQuestion = before !== undefined && questionOf(before.turns) === questionOf(turns);
    // Turns without an agent do not show who spoke; the recorded selections do.
    const selected = spoken.length > 0 || !sameQuestion ? spoken : before.selected;
    this.#remember(sessionId, { turns, selected, over: sameQuestion && before.over });
  }

  recordProgress(sessionId: string, { turns, moves = speakersIn(turns) }: GroupView, over: boolean): void {
    this.#remember(sessionId, { turns, selected: moves, over });
  }

  /** The given view, or one made from the records. */
  #view(sessionId: string, given?: GroupView): WholeView {
    if (given !== undefined) {
      const { turns, agents, moves = speakersIn(turns), maxRounds = this.#maxRounds } = given;
      return { turns, agents, moves, maxRounds: Math.min(maxRounds, this.#maxRounds) };
    }
    const { turns, selected, over } = this.#recorded.get(sessionId) ?? NOTHING;
    // A finished conversation has no rounds left, however its manager counts them.
    const maxRounds = over ? 0 : this.#maxRounds;
    return { turns, agents: [...this.#members.values()], moves: selected, maxRounds };
  }

  #isOver(view: WholeView): boolean {
    return this.roundsOf(view) >= view.maxRounds;
  }

  #remember(sessionId: string, recorded: Recorded): void {
    this.#recorded.delete(sessionId);
    this.#recorded.set(sessionId, recorded);
    const [oldest] = this.#recorded.keys();
    if (this.#recorded.size > RECORDED_SESSIONS_MAX && oldest !== undefined) this.#recorded.delete(oldest);
  }
}

/** @throws {SessionError} `INVALID_OPTION` for an invalid number of rounds. */
export function checkRounds(maxRounds: number): number {
  if (Number.isSafeInteger(maxRounds) && maxRounds >= 1) return maxRounds;
  throw new SessionError("INVALID_OPTION", `maxRounds is ${show(maxRounds)}; give a whole number of 1 or more.`);
}

const NOTHING: Recorded = { turns: [], selected: [], over: false };

/** The agents that answered the last user message, in order. */
function speakersIn(turns: readonly SessionTurn[]): readonly string[] {
  const asked = turns.findLastIndex(isQuestion);
  return turns.slice(asked + 1).flatMap((turn) => (turn.agent !== undefined && isAnswer(turn) ? [turn.agent] : []));
}

/** An answer with calls is not finished, and one that failed or was aborted does not count. */
function isAnswer({ role, toolCalls = [], stopReason }: SessionTurn): boolean {
  return role === "assistant" && toolCalls.length === 0 && stopReason !== "error" && stopReason !== "aborted";
}

function questionOf(turns: readonly SessionTurn[]): string | null {
  return turns.findLast(isQuestion)?.turnId ?? null;
}

function isQuestion({ role, agent }: SessionTurn): boolean {
  return role === "user" && agent === undefined;
}

/** A group's progress in giving every agent a turn. */
interface Cycle {
  /** The number of completed rounds. */
  readonly completed: number;
  /** The agents that took a turn since then. */
  readonly spoken: ReadonlySet<string>;
}

/** The cycle after the moves of a group. Moves of former members do not count. */
export function cycleOf(agents: readonly GroupMember[], moves: readonly string[]): Cycle {
  const names = new Set(agents.map(({ name }) => name));
  let completed = 0;
  const spoken = new Set<string>();
  for (const name of moves) {
    if (!names.has(name)) continue;
    spoken.add(name);
    if (spoken.size < names.size) continue;
    completed += 1;
    spoken.clear();
  }
  return { completed, spoken };
}
