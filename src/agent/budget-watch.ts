import { addCost, addUsage, NO_USAGE } from "../session/usage.ts";
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
