import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type AppendPlan, planFirst } from "../../session/log/append-plan.ts";
import { checkDrafts } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";

/**
 * Plans the replacement of a session's whole log by other entries. Returns the empty head that the plan starts from, and the
 * plan with the new entries and heads.
 */
export function planRewrite(
  { header, updatedAt }: SessionHead,
  entries: readonly Entry[],
): { readonly empty: SessionHead; readonly plan: AppendPlan } {
  const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt });
  return { empty, plan: planFirst(empty, checkDrafts(entries, { verbatim: true }), updatedAt) };
}
