import type { BudgetLevel } from "../../../src/session/payer.ts";
import { useClient } from "../request/use-client.ts";
import { useMe } from "../request/use-me.ts";
import { useRevised } from "../request/use-revised.ts";

const NONE: readonly BudgetLevel[] = [];

/** How far the user has used up the limits of the server's budgets; empty without budgets. Loaded again with each revision. */
export function useBudget(revision: number | string): readonly BudgetLevel[] {
  const client = useClient();
  const userId = useMe()?.userId;
  const { data } = useRevised(`budget ${userId}`, revision, async (signal) =>
    userId === undefined ? NONE : (await client.users.budget(userId, { signal })).levels,
  );
  return data ?? NONE;
}
