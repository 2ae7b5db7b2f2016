import { ancestors, indexOf, lineageOf, type SessionLike } from "./lineage.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../usage.ts";

/** A session with the spending of the operation that created it. */
export type SpendingSession = SessionLike & { readonly usage?: Usage | null; readonly cost?: number | null };

/**
 * The total spending of a session and its ancestors, each operation counted once.
 *
 * A merge spends nothing itself: its usage is the sum of its parents', which are counted themselves. An ancestor that is not
 * among the sessions is not counted.
 *
 * @throws {LineageError} if the id is not among the sessions.
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
