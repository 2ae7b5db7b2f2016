import { expect, test } from "vitest";
import { budgetStores, runBudgetTrial } from "../torture/budget-trial.mjs";

/** `npm run torture -- --kind budgets` has 64 runs and more kills. */
const RUNS = 8;

test.concurrent.each(budgetStores)(
  "runs in %s whose processes are killed overspend by at most an answer each, and leave nothing reserved or uncounted",
  async (store) => {
    const { violations, kills } = await runBudgetTrial(store, { durationMs: 0, runs: RUNS });
    expect(violations).toEqual([]);
    expect(kills).toBe(3);
  },
);
