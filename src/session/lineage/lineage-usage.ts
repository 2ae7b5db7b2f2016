import { ancestors, indexOf, lineageOf, type SessionLike } from "./lineage.ts";
import { addCost, addUsage, NO_USAGE, type Usage, withoutUsage } from "../usage.ts";

/** A session that may say what the operation which made it spent. */
export type SpendingSession = SessionLike & {
  readonly usage?: Usage | null;
  readonly cost?: number | null;
  /** The part of it that the session which it was recovered from counts, too. */
  readonly recovered?: RecoveredSpending | null;
};

/** What earlier claims of a run spent, which the session that it goes on from counts as well. */
export interface RecoveredSpending {
  readonly sessionId: string;
  readonly usage: Usage | null;
  readonly cost: number | null;
}

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
    const { recovered = null } = session;
    const isTwice = recovered !== null && byId.has(recovered.sessionId);
    usage = addUsage(usage, withoutUsage(session.usage ?? NO_USAGE, isTwice ? recovered.usage : null));
    cost = addCost(cost, Math.max(0, (session.cost ?? 0) - (isTwice ? (recovered.cost ?? 0) : 0)));
  }
  return { usage, cost };
}
