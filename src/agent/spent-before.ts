import type { Session } from "../session/session.ts";
import { NO_USAGE } from "../session/usage.ts";
import type { Budget, Spending } from "./loop-options.ts";

/** What counts against a budget before the run has spent anything. */
export function spentBefore(_budget: Budget, _input: Session): Spending {
  return { usage: NO_USAGE, cost: 0 };
}
