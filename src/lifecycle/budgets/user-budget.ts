import { checkArgument, checkKeys, isObject, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { BudgetUnit } from "../../session/payer.ts";

const HOURS_MAX = 366 * 24;
const BUDGETS_MAX = 16;
const UNITS: readonly BudgetUnit[] = ["totalTokens", "cost"];

/** How much each user may spend in a window of time that ends now. Give a limit in tokens, in cost, or both. */
export interface UserBudget {
  readonly per: "user";
  /** Hours or days, such as `"1h"`, `"1d"` or `"30d"`; at most 366 days. The window moves on at every full hour. */
  readonly window: string;
  readonly totalTokens?: number;
  /** In US dollars. */
  readonly cost?: number;
  /** The share of a limit, from 0 to 1, from which on runs emit `budget-warning` (default: none). */
  readonly warnAt?: number;
}

/** One limit of a budget. */
export interface BudgetLimit {
  readonly window: string;
  readonly hours: number;
  readonly unit: BudgetUnit;
  readonly limit: number;
  readonly warnAt: number | null;
}

const KEYS: KeysOf<UserBudget> = { per: true, window: true, totalTokens: true, cost: true, warnAt: true };

/** The limits of budgets. @throws {SessionError} `INVALID_OPTION` for budgets that cannot work. */
export function limitsOf(budgets: readonly UserBudget[]): readonly BudgetLimit[] {
  checkArgument(Array.isArray(budgets), budgets, "budgets", "a list of budgets");
  if (budgets.length > BUDGETS_MAX) throw invalid(`There are ${budgets.length} budgets; give at most ${BUDGETS_MAX}.`);
  return budgets.flatMap((budget) => {
    checkArgument(isObject(budget), budget, "budgets", 'a budget, such as { per: "user", window: "1d", cost: 2 }');
    checkKeys(budget, KEYS, "A budget");
    const { per, window, warnAt = null } = budget;
    if (per !== "user") throw invalid(`A budget is per "user", not per ${show(per)}.`);
    const hours = hoursIn(window);
    if (warnAt !== null && !(typeof warnAt === "number" && warnAt >= 0 && warnAt <= 1))
      throw invalid(`warnAt of a budget is ${show(warnAt)}; give a share from 0 to 1.`);
    const units = UNITS.filter((unit) => budget[unit] !== undefined);
    if (units.length === 0) throw invalid(`The budget of ${show(window)} has no limit; give totalTokens or cost.`);
    return units.map((unit): BudgetLimit => {
      const limit = budget[unit];
      if (!(typeof limit === "number" && limit >= 0 && Number.isFinite(limit)))
        throw invalid(`${unit} of a budget is ${show(limit)}; give a number of 0 or more.`);
      return { window, hours, unit, limit, warnAt };
    });
  });
}

function hoursIn(window: string): number {
  const [, count, unit] = /^([1-9]\d{0,4})([hd])$/.exec(typeof window === "string" ? window : "") ?? [];
  const hours = Number(count) * (unit === "d" ? 24 : 1);
  if (hours <= HOURS_MAX) return hours;
  throw invalid(`The window of a budget is ${show(window)}; give hours or days, such as "1h" or "30d", up to "366d".`);
}

function invalid(text: string): SessionError {
  return new SessionError("INVALID_OPTION", text);
}
