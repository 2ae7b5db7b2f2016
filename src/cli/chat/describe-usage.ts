import type { Usage } from "../../index.ts";

/** Tokens and cost on one line; a cost of 0 is left out, as it means that the model reports no cost. */
export function describeUsage({ inputTokens, outputTokens }: Usage, cost: number | null): string {
  const price = cost === null || cost === 0 ? "" : `, $${cost.toFixed(cost < 0.01 ? 6 : 4)}`;
  return `${inputTokens} tokens in, ${outputTokens} out${price}`;
}
