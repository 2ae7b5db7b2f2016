import type { Message } from "../session/message.ts";
import type { ImportedSums } from "../session/store.ts";
import { costOf, priceOf } from "./prices.ts";

/** A cost for display. */
export interface ShownCost {
  readonly cost: number;
  /** Whether some of it was computed from today's prices because none was recorded. Such a cost is never stored. */
  readonly computed: boolean;
}

/** The recorded cost of an answer, else the cost of its tokens at the model's price; null if neither is known. */
export function costOfAnswer(message: Message): ShownCost | null {
  if (message.role !== "assistant") return null;
  const { provider, model, usage, cost } = message;
  if (cost !== undefined) return { cost, computed: false };
  if (provider === undefined || model === undefined || usage === undefined) return null;
  const computed = costOf(usage, priceOf(provider, model));
  return computed === undefined ? null : { cost: computed, computed: true };
}

/** The cost of imported work: recorded costs plus computed ones for models with a price; null if nothing is known. */
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
