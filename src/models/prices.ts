import { checkArgument, isObject } from "../session/check-arguments.ts";
import { SessionError, show } from "../session/errors.ts";
import type { Usage } from "../session/usage.ts";
import { isModelName, undatedName } from "../agent/model/undated-name.ts";

/** The price of a model, in US dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Input tokens read from the provider's cache (default: the price of input). */
  readonly cacheRead?: number;
  /** Input tokens written to the provider's cache (default: the price of input). */
  readonly cacheWrite?: number;
  /** Input tokens written to it for an hour (default: the price of other writes). */
  readonly longCacheWrite?: number;
}

/** The parts of a price, the required ones first. */
const FIELDS = ["input", "output", "cacheRead", "cacheWrite", "longCacheWrite"] as const;

const TOKENS_PRICED = 1_000_000;

const prices = new Map<string, ModelPrice>([
  ...openaiPrices().map(([id, price]) => [`openai/${id}`, price] as const),
  ...anthropicPrices().map(([id, price]) => [`anthropic/${id}`, price] as const),
]);

/**
 * The price of a model; undefined if unknown. A dated id has the price of the undated one unless it was registered itself.
 *
 * Providers change their prices: the table holds list prices of well-known models, without batch discounts or surcharges for
 * long inputs. Override them with `registerPrices`, or with a model's option `prices`.
 */
export function priceOf(provider: string, model: string): ModelPrice | undefined {
  const name = `${provider}/${model}`;
  return prices.get(name) ?? prices.get(undatedName(name));
}

/**
 * The cost of a usage in US dollars; undefined without a price, so that an unknown cost is never shown as 0. `longWriteTokens`
 * is how many of the tokens written to the cache were written for an hour.
 */
export function costOf(usage: Usage, price: ModelPrice | undefined, longWriteTokens = 0): number | undefined {
  checkArgument(isObject(usage), usage, "costOf", "a usage");
  if (price === undefined) return undefined;
  checkArgument(isObject(price), price, "costOf", "a price, or undefined");
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const long = Math.min(longWriteTokens, cacheWriteTokens);
  const write = price.cacheWrite ?? price.input;
  const sum =
    fresh * price.input +
    cacheReadTokens * (price.cacheRead ?? price.input) +
    (cacheWriteTokens - long) * write +
    long * (price.longCacheWrite ?? write) +
    outputTokens * price.output;
  return sum / TOKENS_PRICED;
}

/**
 * Adds or replaces prices, by `provider/model`.
 *
 * @throws {SessionError} `INVALID_OPTION` for a name without a provider, or a price that is not a number from 0 on; nothing
 * is registered then.
 */
export function registerPrices(added: Readonly<Record<string, ModelPrice>>): void {
  checkArgument(isObject(added), added, "registerPrices", "an object of prices by model");
  for (const [name, price] of Object.entries(added)) {
    if (!isModelName(name))
      throw new SessionError("INVALID_OPTION", `Price ${show(name)} names no model; write it as "provider/model".`);
    checkPrice(price, name);
  }
  for (const [name, price] of Object.entries(added)) prices.set(name, Object.freeze({ ...price }));
}

/** @throws {SessionError} `INVALID_OPTION` if a required field is missing or a value is not a number from 0 on. */
export function checkPrice(price: ModelPrice, name: string): void {
  checkArgument(isObject(price), price, name, "a price");
  for (const field of FIELDS) {
    const value: unknown = price[field];
    if (value === undefined && field !== "input" && field !== "output") continue;
    if (typeof value !== "number" || !(value >= 0 && value < Number.POSITIVE_INFINITY))
      throw new SessionError(
        "INVALID_OPTION",
        `The price of ${show(name)} needs a number from 0 on for ${field}, in dollars for a million tokens.`,
      );
  }
}

function openaiPrices(): [id: string, price: ModelPrice][] {
  const rows: [id: string, input: number, cacheRead: number, output: number][] = [
    ["gpt-5.5", 5, 0.5, 30],
    ["gpt-5.4", 2.5, 0.25, 15],
    ["gpt-5.4-mini", 0.75, 0.075, 4.5],
    ["gpt-5.4-nano", 0.2, 0.02, 1.25],
    ["gpt-5.3-codex", 1.75, 0.175, 14],
    ["gpt-5.2", 1.75, 0.175, 14],
    ["gpt-5.2-codex", 1.75, 0.175, 14],
    ["gpt-5.1", 1.25, 0.125, 10],
    ["gpt-5.1-codex", 1.25, 0.125, 10],
    ["gpt-5", 1.25, 0.125, 10],
    ["gpt-5-codex", 1.25, 0.125, 10],
    ["gpt-5-mini", 0.25, 0.025, 2],
    ["gpt-5-nano", 0.05, 0.005, 0.4],
    ["gpt-4.1", 2, 0.5, 8],
    ["gpt-4.1-mini", 0.4, 0.1, 1.6],
    ["gpt-4.1-nano", 0.1, 0.025, 0.4],
    ["gpt-4o", 2.5, 1.25, 10],
    ["gpt-4o-mini", 0.15, 0.075, 0.6],
    ["o4-mini", 1.1, 0.275, 4.4],
    ["o3", 2, 0.5, 8],
    ["o3-mini", 1.1, 0.55, 4.4],
    ["o1", 15, 7.5, 60],
  ];
  // From this family on, writing to the cache has a price: 1.25 times that of input.
  const written: typeof rows = [
    ["gpt-6.1-sol", 2, 0.1, 10],
    ["gpt-6-astra", 10, 1, 50],
    ["gpt-6-sol", 2, 0.2, 10],
    ["gpt-6-luna", 0.1, 0.01, 0.5],
    ["gpt-5.6", 4, 0.4, 20],
    ["gpt-5.6-sol", 4, 0.4, 20],
    ["gpt-5.6-terra", 2, 0.2, 12],
    ["gpt-5.6-luna", 0.2, 0.02, 1.2],
  ];
  return [
    ...rows.map(([id, input, cacheRead, output]): [string, ModelPrice] => [id, { input, output, cacheRead }]),
    ...written.map(([id, input, cacheRead, output]): [string, ModelPrice] => {
      return [id, { input, output, cacheRead, cacheWrite: input * 1.25 }];
    }),
  ];
}

/** Writing to the cache costs 1.25 times the price of input for five minutes, and twice the price of input for an hour. */
function anthropicPrices(): [id: string, price: ModelPrice][] {
  const rows: [id: string, input: number, cacheWrite: number, cacheRead: number, output: number][] = [
    ["claude-fable-5-1", 10, 12.5, 0.25, 50],
    ["claude-mythos-5-1", 10, 12.5, 0.25, 50],
    ["claude-fable-5", 10, 12.5, 1, 50],
    ["claude-mythos-5", 10, 12.5, 1, 50],
    ["claude-opus-5-5", 4, 5, 0.2, 20],
    ["claude-opus-5", 5, 6.25, 0.5, 25],
    ["claude-opus-4-8", 5, 6.25, 0.5, 25],
    ["claude-opus-4-7", 5, 6.25, 0.5, 25],
    ["claude-opus-4-6", 5, 6.25, 0.5, 25],
    ["claude-opus-4-5", 5, 6.25, 0.5, 25],
    ["claude-opus-4-1", 15, 18.75, 1.5, 75],
    ["claude-opus-4", 15, 18.75, 1.5, 75],
    ["claude-sonnet-5-5", 2, 2.5, 0.1, 10],
    ["claude-sonnet-5", 2, 2.5, 0.2, 10],
    ["claude-sonnet-4-6", 3, 3.75, 0.3, 15],
    ["claude-sonnet-4-5", 3, 3.75, 0.3, 15],
    ["claude-sonnet-4", 3, 3.75, 0.3, 15],
    ["claude-3-7-sonnet", 3, 3.75, 0.3, 15],
    ["claude-3-5-sonnet", 3, 3.75, 0.3, 15],
    ["claude-haiku-5-5", 0.1, 0.125, 0.01, 0.5],
    ["claude-haiku-4-5", 1, 1.25, 0.1, 5],
    ["claude-3-5-haiku", 0.8, 1, 0.08, 4],
    ["claude-3-opus", 15, 18.75, 1.5, 75],
    ["claude-3-haiku", 0.25, 0.3, 0.03, 1.25],
  ];
  return rows.map(([id, input, cacheWrite, cacheRead, output]) => {
    return [id, { input, output, cacheRead, cacheWrite, longCacheWrite: input * 2 }];
  });
}
