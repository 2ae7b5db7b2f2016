import type { Message } from "../session/message.ts";
import type { ImportedSums } from "../session/store.ts";
import { costOf, priceOf } from "./prices.ts";

/** A cost as it is shown. */
export interface ShownCost {
  readonly cost: number;
  /** Whether some of it was computed from the prices of today, because nobody recorded it. It is never stored. */
  readonly computed: boolean;
}

/** What an answer cost: what is on record, else what its tokens cost by the price of its model; null where neither is known. */
export function costOfAnswer(message: Message): ShownCost | null {
  if (message.role !== "assistant") return null;
  const { provider, model, usage, cost } = message;
  if (cost !== undefined) return { cost, computed: false };
  if (provider === undefined || model === undefined || usage === undefined) return null;
  const computed = costOf(usage, priceOf(provider, model));
  return computed === undefined ? null : { cost: computed, computed: true };
}

/** What imported work cost, as far as it is on record or its models have a price; null where nothing is known. */
export function costOfImported({ cost, uncosted }: ImportedSums): ShownCost | null {
  let [sum, computed] = [cost, false];
  for (const { model, usage } of uncosted) {
    const slash = model?.indexOf("/") ?? -1;
    const found = model === null ? undefined : costOf(usage, priceOf(model.slice(0, slash), model.slice(slash + 1)));
    if (found === undefined) continue;
    sum += found;
    computed = true;
  }
  return sum === 0 && !computed ? null : { cost: sum, computed };
}
