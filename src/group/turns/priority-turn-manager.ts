import { SessionError, show } from "../../session/errors.ts";
import type { GroupMember, TurnManager } from "./turn-manager.ts";
import { cycleOf, TurnRoster, type WholeView } from "./turn-roster.ts";

/** Every agent speaks once in each round, by descending priority; ties in the order of registration. */
export class PriorityTurnManager extends TurnRoster implements TurnManager {
  readonly #priorities: ReadonlyMap<string, number>;

  /** An agent without a priority has 0. Ends the conversation after `maxRounds` full rounds. */
  constructor(priorities: Readonly<Record<string, number>> = {}, maxRounds = 10) {
    super(maxRounds);
    this.#priorities = new Map(Object.entries(priorities ?? {}).map(checkPriority));
  }

  protected roundsOf({ agents, moves }: WholeView): number {
    return cycleOf(agents, moves).completed;
  }

  protected choose({ agents, moves }: WholeView): string | null {
    const { spoken } = cycleOf(agents, moves);
    const ordered = agents.toSorted((a, b) => this.#priorityOf(b) - this.#priorityOf(a));
    return ordered.find(({ name }) => !spoken.has(name))?.name ?? null;
  }

  #priorityOf({ name }: GroupMember): number {
    return this.#priorities.get(name) ?? 0;
  }
}

function checkPriority([name, priority]: [string, unknown]): [string, number] {
  if (typeof priority === "number" && Number.isFinite(priority)) return [name, priority];
  throw new SessionError("INVALID_OPTION", `The priority of ${show(name)} is ${show(priority)}; give a number.`);
}
