import type { TurnManager } from "./turn-manager.ts";
import { cycleOf, TurnRoster, type WholeView } from "./turn-roster.ts";

/** Every agent speaks once in each round, in the order of registration. */
export class RoundRobinTurnManager extends TurnRoster implements TurnManager {
  /** Ends the conversation after `maxRounds` full rounds. */
  constructor(maxRounds = 10) {
    super(maxRounds);
  }

  protected roundsOf({ agents, moves }: WholeView): number {
    return cycleOf(agents, moves).completed;
  }

  protected choose({ agents, moves }: WholeView): string | null {
    const { spoken } = cycleOf(agents, moves);
    return agents.find(({ name }) => !spoken.has(name))?.name ?? null;
  }
}
