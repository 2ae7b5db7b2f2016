import { lineageUsage } from "../session/lineage/lineage.ts";
import type { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { addCost, addUsage, NO_USAGE, withoutUsage } from "../session/usage.ts";
import type { Budget, LoopOptions, Spending } from "./loop-options.ts";

/** Watches what a run spends. */
export class BudgetWatch {
  readonly #budget: Budget;
  readonly #onBudget: LoopOptions["onBudget"];
  readonly #before: Spending;
  #crossed = false;

  /** `before` is what was spent before the run and counts too. */
  constructor(budget: Budget, onBudget: LoopOptions["onBudget"], before: Spending) {
    this.#budget = budget;
    this.#onBudget = onBudget;
    this.#before = before;
  }

  /** Whether the run is to stop, given what it has spent itself. */
  stops(own: { readonly usage: Spending["usage"] | null; readonly cost: number | null }): boolean {
    if (this.#crossed) return false;
    const { totalTokens = Number.POSITIVE_INFINITY, cost: costMax = Number.POSITIVE_INFINITY } = this.#budget;
    const usage = addUsage(this.#before.usage, own.usage ?? NO_USAGE);
    const cost = addCost(this.#before.cost, own.cost);
    if (usage.totalTokens <= totalTokens && cost <= costMax) return false;
    this.#crossed = true;
    return this.#onBudget === undefined || this.#onBudget({ usage, cost }) === "stop";
  }
}

/** What counts against a budget beside what the run itself spends, over all of its claims. */
export function spentBefore(budget: Budget, input: Session, { recovered }: Session): Spending {
  if (budget.over !== "lineage") return { usage: NO_USAGE, cost: 0 };
  const { usage, cost } = lineageUsage(knownLineage(input), input.id);
  if (recovered?.sessionId !== input.id) return { usage, cost };
  return { usage: withoutUsage(usage, recovered.usage), cost: Math.max(0, cost - (recovered.cost ?? 0)) };
}

/** A session and those it was made from, as far as the process still knows them. */
function knownLineage(session: Session): Session[] {
  const found = new Map([[session.id, session]]);
  // A map that grows while it is walked is a queue.
  for (const { lineage } of found.values()) {
    for (const id of lineage.parents) {
      const parent = found.has(id) ? undefined : sessionRegistry.get(id);
      if (parent !== undefined) found.set(id, parent);
    }
  }
  return [...found.values()];
}
