import type { Usage } from "../../index.ts";

/** Tokens and their price in one short line. */
export function describeSpending({ inputTokens, outputTokens }: Usage, cost: number | null): string {
  const price = cost === null ? "" : `, $${cost === 0 ? "0" : cost.toFixed(cost < 0.01 ? 6 : 4)}`;
  return `${inputTokens} tokens in, ${outputTokens} out${price}`;
}
