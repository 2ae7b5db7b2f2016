import type { SpentAmounts } from "./ledger.ts";

/** What a budget limits. */
export type BudgetUnit = keyof SpentAmounts;

/** How far a user has used up a budget. */
export interface BudgetLevel {
  /** As in the budget, such as `1d`. */
  readonly window: string;
  readonly unit: BudgetUnit;
  readonly limit: number;
  /** What was spent in the window. */
  readonly spent: number;
  /** What requests under way have reserved. */
  readonly reserved: number;
  /** The share of the limit from which on runs emit `budget-warning`; null if none. */
  readonly warnAt: number | null;
  /** When so much has left the window that requests are possible again, as an ISO time; null if they are possible now. */
  readonly movesOnAt: string | null;
}

/** What a run has spent, and what it is about to ask for. */
export interface Payment {
  /** Whatever runs at the same time has another id. */
  readonly run: string;
  /** What the run has settled as far as its process knows, and has spent until now, over all of its claims. */
  readonly before: SpentAmounts;
  readonly spent: SpentAmounts;
  /** What the next request will probably spend; null if there is none. */
  readonly next: SpentAmounts | null;
  /** The request is under way, so that only its reservation is extended. */
  readonly underWay: boolean;
  /** How long the reservation lasts unless it is extended. */
  readonly ttlMs: number;
  /** Nothing follows. */
  readonly ends: boolean;
}

/** Who pays for the requests of a run. */
export interface Payer {
  /** Whether a budget is in cost, so that every model needs a price. */
  readonly countsCost: boolean;
  /**
   * Settles what was spent and reserves what the next request will spend, in one step. Resolves to the levels after it.
   *
   * @throws {BudgetExceededError} if a limit is reached; what was spent is settled, and nothing is reserved.
   */
  pay(payment: Payment): Promise<readonly BudgetLevel[]>;
}
