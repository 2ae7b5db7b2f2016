import type { SpentAmounts } from "./ledger.ts";

/** The unit of a budget. */
export type BudgetUnit = keyof SpentAmounts;

/** The use of a budget by a user. */
export interface BudgetLevel {
  /** As in the budget, such as `1d`. */
  readonly window: string;
  readonly unit: BudgetUnit;
  readonly limit: number;
  /** The amount spent in the window. */
  readonly spent: number;
  /** The amount that current requests have reserved. */
  readonly reserved: number;
  /** The share of the limit from which on runs emit `budget-warning`; null if none. */
  readonly warnAt: number | null;
  /** The ISO time at which requests are possible again, because old spending has left the window; null if they are possible now. */
  readonly movesOnAt: string | null;
}

/** The spending of a run, and the cost of its next request. */
export interface Payment {
  /** Whatever runs at the same time has another id. */
  readonly run: string;
  /** The settled amount that this process knows of, and the amount spent until now, over all claims of the run. */
  readonly before: SpentAmounts;
  readonly spent: SpentAmounts;
  /** The expected cost of the next request; null without a next request. */
  readonly next: SpentAmounts | null;
  /** True while the request runs: then only its reservation is extended. */
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
   * Settles the amount spent and reserves the cost of the next request, in one step. Resolves to the new levels.
   *
   * @throws {BudgetExceededError} if a limit is reached; the amount spent is settled, and nothing is reserved.
   */
  pay(payment: Payment): Promise<readonly BudgetLevel[]>;
}
