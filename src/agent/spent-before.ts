import { lineageUsage } from "../session/lineage-usage.ts";
import type { Session } from "../session/session.ts";
import { sessionRegistry } from "../session/session-registry.ts";
import { NO_USAGE } from "../session/usage.ts";
import type { Budget, Spending } from "./loop-options.ts";

/** What counts against a budget before the run has spent anything. */
export function spentBefore(budget: Budget, input: Session): Spending {
  if (budget.over !== "lineage") return { usage: NO_USAGE, cost: 0 };
  return lineageUsage(knownLineage(input), input.id);
}

/** A session and those it was made from, as far as the process still knows them. */
function knownLineage(session: Session): Session[] {
  const found = new Map([[session.id, session]]);
  // A map that grows while it is walked is a queue.
  for (const { lineage } of found.values()) {
    for (const id of lineage.parents) {
      const parent = found.has(id) ? undefined : sessionRegistry.get(id);
      if (parent !== undefined) found.set(id, parent);
    }
  }
  return [...found.values()];
}
