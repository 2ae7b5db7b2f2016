import { SessionError, show } from "../../session/errors.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import type { GroupMember, GroupView, TurnManager } from "./turn-manager.ts";
import { TurnRoster, cycleOf } from "./turn-roster.ts";

/** Everyone speaks once a round, those with a higher priority first; equals in the order of registration. */
export class PriorityTurnManager implements TurnManager {
  readonly #roster: TurnRoster;
  readonly #priorities: ReadonlyMap<string, number>;

  /** An agent without a priority has 0. Ends the conversation after `maxRounds` full rounds. */
  constructor(priorities: Readonly<Record<string, number>> = {}, maxRounds = 10) {
    this.#roster = new TurnRoster(maxRounds);
    this.#priorities = new Map(Object.entries(priorities ?? {}).map(checkPriority));
  }

  register(agentName: string, role: string): void {
    this.#roster.register(agentName, role);
  }

  async selectNext(sessionId: string, view?: GroupView): Promise<string | null> {
    const { agents, moves, maxRounds } = this.#roster.view(sessionId, view);
    const { completed, spoken } = cycleOf(agents, moves);
    const [next] = completed < maxRounds ? this.#ordered(agents).filter(({ name }) => !spoken.has(name)) : [];
    return this.#roster.selected(sessionId, view, next?.name ?? null);
  }

  async isComplete(sessionId: string, view?: GroupView): Promise<boolean> {
    const { agents, moves, maxRounds } = this.#roster.view(sessionId, view);
    return cycleOf(agents, moves).completed >= maxRounds;
  }

  filterVisible(turns: readonly SessionTurn[], _options: { readonly agentName: string }): readonly SessionTurn[] {
    return turns;
  }

  recordTurns(sessionId: string, turns: readonly SessionTurn[]): void {
    this.#roster.record(sessionId, turns);
  }

  recordProgress(sessionId: string, view: GroupView, over: boolean): void {
    this.#roster.recordProgress(sessionId, view, over);
  }

  #ordered(agents: readonly GroupMember[]): GroupMember[] {
    return agents.toSorted((a, b) => this.#priorityOf(b) - this.#priorityOf(a));
  }

  #priorityOf({ name }: GroupMember): number {
    return this.#priorities.get(name) ?? 0;
  }
}

function checkPriority([name, priority]: [string, unknown]): [string, number] {
  if (typeof priority === "number" && Number.isFinite(priority)) return [name, priority];
  throw new SessionError("INVALID_OPTION", `The priority of ${show(name)} is ${show(priority)}; give a number.`);
}
