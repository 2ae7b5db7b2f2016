import type { BudgetLevel } from "../../../src/session/payer.ts";
import { expect, test } from "vitest";
import { levelsToTell, sentenceOf, spentOf, stateOf, windowName } from "./budget-words.ts";

const level = (given: Partial<BudgetLevel>): BudgetLevel => ({
  window: "1d",
  unit: "cost",
  limit: 2,
  spent: 0,
  reserved: 0,
  warnAt: 0.8,
  movesOnAt: null,
  ...given,
});

test("a limit warns from its share on, and only if the server has one", () => {
  expect([0, 1.59, 1.6, 2, 2.4].map((spent) => stateOf(level({ spent })))).toEqual([
    "free",
    "free",
    "warns",
    "reached",
    "reached",
  ]);
  expect(stateOf(level({ spent: 1.9, warnAt: null }))).toBe("free");
  expect(stateOf(level({ limit: 0 }))).toBe("reached");
});

test("the limits that are reached come first, and free ones are not told", () => {
  const [free, warns, reached] = [level({}), level({ spent: 1.7 }), level({ spent: 2 })];
  expect(levelsToTell([free, warns, reached])).toEqual([reached, warns]);
});

test("names windows and amounts", () => {
  expect(["1h", "12h", "1d", "30d", "1w"].map(windowName)).toEqual(["1 hour", "12 hours", "24 hours", "30 days", "1w"]);
  expect(spentOf(level({ spent: 1.8 }))).toBe("$1.80 of $2.00");
  expect(spentOf(level({ unit: "totalTokens", limit: 20_000_000, spent: 1_500_000 }))).toBe("1.5M of 20M tokens");
});

test("says when runs are possible again after a limit was reached", () => {
  expect(sentenceOf(level({ spent: 1.7 }))).toBe("Your budget will soon be used up: $1.70 of $2.00 in 24 hours.");
  const now = new Date("2026-05-01T10:30:00");
  const movesOnAt = new Date("2026-05-01T14:00:00").toISOString();
  expect(sentenceOf(level({ spent: 2.4, movesOnAt }), now)).toMatch(
    /^Your budget is used up: \$2\.40 of \$2\.00 in 24 hours\. Runs are possible again at 0?2:00\sPM\.$/,
  );
});
