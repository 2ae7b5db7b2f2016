import type { Usage } from "../../index.ts";

/** Tokens and their price in one short line; a price of nothing is not known, as no model reports one. */
export function describeSpending({ inputTokens, outputTokens }: Usage, cost: number | null): string {
  const price = cost === null || cost === 0 ? "" : `, $${cost.toFixed(cost < 0.01 ? 6 : 4)}`;
  return `${inputTokens} tokens in, ${outputTokens} out${price}`;
}
