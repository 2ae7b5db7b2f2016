import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type AppendPlan, planFirst } from "../../session/log/append-plan.ts";
import { checkDrafts } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";

/** What a log is planned from, and the plan of all of it. */
export interface LogPlan {
  readonly empty: SessionHead;
  readonly plan: AppendPlan;
}

/** The log of a session folded again from its beginning, with other entries in the place of those it has. */
export function planAgain({ header, updatedAt }: SessionHead, entries: readonly Entry[]): LogPlan {
  const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt });
  return { empty, plan: planFirst(empty, checkDrafts(entries, { verbatim: true }), updatedAt) };
}
