import { ancestors, indexOf, lineageOf, type SessionLike } from "./lineage.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../usage.ts";

/** A session that may say what the operation which made it spent. */
export type SpendingSession = SessionLike & { readonly usage?: Usage | null; readonly cost?: number | null };

/**
 * What a session and all that it was made from have spent, each operation once.
 *
 * A merge spends nothing: its usage is the sum of its sides, which count themselves. An ancestor that is not among the
 * sessions is not counted.
 *
 * @throws {LineageError} when the id is not among the sessions.
 */
export function lineageUsage(sessions: Iterable<SpendingSession>, id: string): { usage: Usage; cost: number } {
  const byId = indexOf(sessions, "lineageUsage");
  const above = ancestors(byId.values(), id);
  let usage = NO_USAGE;
  let cost = 0;
  for (const session of [byId.get(id) as SpendingSession, ...above]) {
    if (lineageOf(session).kind === "op_merge") continue;
    usage = addUsage(usage, session.usage ?? undefined);
    cost = addCost(cost, session.cost);
  }
  return { usage, cost };
}
