import type { ReactNode } from "react";
import { levelsToTell, sentenceOf, stateOf } from "./budget-words.ts";
import { useBudget } from "./use-budget.ts";
import "./budget.css";

/** Tells above the message field that a budget of the user is used up, or will be soon; nothing before that. */
export function BudgetNote({ revision }: { readonly revision: number | string }): ReactNode {
  const [level] = levelsToTell(useBudget(revision));
  if (level === undefined) return null;
  const reached = stateOf(level) === "reached";
  return <output className={reached ? "budget-note budget-note-reached" : "budget-note"}>{sentenceOf(level)}</output>;
}
