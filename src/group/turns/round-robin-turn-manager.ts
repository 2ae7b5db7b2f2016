import type { SessionTurn } from "../../session/state/state.ts";
import type { GroupView, TurnManager } from "./turn-manager.ts";
import { TurnRoster, cycleOf } from "./turn-roster.ts";

/** Everyone speaks once a round, in the order in which they were registered. */
export class RoundRobinTurnManager implements TurnManager {
  readonly #roster: TurnRoster;

  /** Ends the conversation after `maxRounds` full rounds. */
  constructor(maxRounds = 10) {
    this.#roster = new TurnRoster(maxRounds);
  }

  register(agentName: string, role: string): void {
    this.#roster.register(agentName, role);
  }

  async selectNext(sessionId: string, view?: GroupView): Promise<string | null> {
    const { agents, moves, maxRounds } = this.#roster.view(sessionId, view);
    const { completed, spoken } = cycleOf(agents, moves);
    const next = completed < maxRounds ? agents.find(({ name }) => !spoken.has(name)) : undefined;
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
}
