import type { OpenRunView, RunsQuery } from "../../../lifecycle/runs/list-runs.ts";
import type { SessionManager } from "../../../index.ts";

const PAGE = 100;

/** The first so many open runs that stand in one of the given ways, and whether there are more. */
export async function readRuns(
  manager: SessionManager,
  states: readonly RunsQuery["state"][],
  { limit, ...query }: { readonly limit: number; readonly userId?: string },
): Promise<{ readonly runs: readonly OpenRunView[]; readonly more: boolean }> {
  const runs: OpenRunView[] = [];
  for (const state of states) {
    let cursor: string | null = null;
    do {
      const page = await manager.runs({ ...query, state, limit: PAGE, ...(cursor === null ? {} : { cursor }) });
      runs.push(...page.items);
      if (runs.length > limit) return { runs: runs.slice(0, limit), more: true };
      cursor = page.next;
    } while (cursor !== null);
  }
  return { runs, more: false };
}
