import type { BudgetLevel } from "../../../src/session/payer.ts";
import { formatCompact, formatMoney } from "../sessions/list/amounts.ts";
import { formatTime } from "../transcript/content/format.ts";

/** How much of a limit is used up: `warns` from the share on that the server is set to warn at. */
export type BudgetState = "free" | "warns" | "reached";

/** The state of one limit. */
export function stateOf({ spent, limit, warnAt }: BudgetLevel): BudgetState {
  if (spent >= limit) return "reached";
  return warnAt !== null && spent >= warnAt * limit ? "warns" : "free";
}

/** The limits of which so much is used up that the user should know, the ones that are reached first. */
export function levelsToTell(levels: readonly BudgetLevel[]): readonly BudgetLevel[] {
  const reached = levels.filter((level) => stateOf(level) === "reached");
  return [...reached, ...levels.filter((level) => stateOf(level) === "warns")];
}

/** The window of a limit, such as "24 hours" or "30 days". */
export function windowName(window: string): string {
  const [, count = "", unit] = /^(\d+)([hd])$/.exec(window) ?? [];
  if (unit === undefined) return window;
  if (window === "1d") return "24 hours";
  const name = unit === "h" ? "hour" : "days";
  return unit === "h" && count !== "1" ? `${count} hours` : `${count} ${name}`;
}

/** What was spent and the limit, such as "$1.80 of $2.00". */
export function spentOf({ unit, spent, limit }: BudgetLevel): string {
  if (unit === "cost") return `${formatMoney(spent)} of ${formatMoney(limit)}`;
  return `${formatCompact(spent)} of ${formatCompact(limit)} tokens`;
}

/** The state of a limit in a sentence or two. */
export function sentenceOf(level: BudgetLevel, now: Date = new Date()): string {
  const { window, movesOnAt } = level;
  const amounts = `${spentOf(level)} in ${windowName(window)}`;
  if (stateOf(level) !== "reached") return `Your budget will soon be used up: ${amounts}.`;
  const until = movesOnAt === null ? "" : ` Runs are possible again at ${formatTime(movesOnAt, now)}.`;
  return `Your budget is used up: ${amounts}.${until}`;
}
