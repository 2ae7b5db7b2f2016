import { lineageUsage } from "../session/lineage/lineage.ts";
import type { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { addCost, addUsage, NO_USAGE, withoutUsage } from "../session/usage.ts";
import type { Budget, LoopOptions, Spending } from "./loop-options.ts";

/** Enforces the budget of a run. */
export class BudgetWatch {
  readonly #budget: Budget;
  readonly #onBudget: LoopOptions["onBudget"];
  readonly #before: Spending;
  #crossed = false;

  /** `before` is the spending from before the run, which also counts. */
  constructor(budget: Budget, onBudget: LoopOptions["onBudget"], before: Spending) {
    this.#budget = budget;
    this.#onBudget = onBudget;
    this.#before = before;
  }

  /** Whether the run must stop, given its own spending. */
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

/** The spending that counts against a budget in addition to the run's own, over all its claims. */
export function spentBefore(budget: Budget, input: Session, { recovered }: Session): Spending {
  if (budget.over !== "lineage") return { usage: NO_USAGE, cost: 0 };
  const { usage, cost } = lineageUsage(knownLineage(input), input.id);
  if (recovered?.sessionId !== input.id) return { usage, cost };
  return { usage: withoutUsage(usage, recovered.usage), cost: Math.max(0, cost - (recovered.cost ?? 0)) };
}

/** A session and its ancestors, as far as this process knows them. */
function knownLineage(session: Session): Session[] {
  const found = new Map([[session.id, session]]);
  // A Map also iterates over entries that are added during the iteration, so it serves as a queue.
  for (const { lineage } of found.values()) {
    for (const id of lineage.parents) {
      const parent = found.has(id) ? undefined : sessionRegistry.get(id);
      if (parent !== undefined) found.set(id, parent);
    }
  }
  return [...found.values()];
}
