import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type AppendPlan, planFirst } from "../../session/log/append-plan.ts";
import { checkDrafts } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";

/**
 * The log of a session folded again from its beginning, with other entries instead of those it has: the head that it is
 * planned from, and the plan of all of it.
 */
export function planAgain(
  { header, updatedAt }: SessionHead,
  entries: readonly Entry[],
): { readonly empty: SessionHead; readonly plan: AppendPlan } {
  const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt });
  return { empty, plan: planFirst(empty, checkDrafts(entries, { verbatim: true }), updatedAt) };
}
