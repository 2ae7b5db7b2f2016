import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { costOf, priceOf, registerPrices } from "./prices.ts";

describe("priceOf", () => {
  test("has prices for well-known models of both providers, with cache prices", () => {
    expect(priceOf("openai", "gpt-5-mini")).toEqual({ input: 0.25, output: 2, cacheRead: 0.025 });
    expect(priceOf("anthropic", "claude-sonnet-4-5")).toEqual({
      input: 3,
      output: 15,
      cacheRead: 0.3,
      cacheWrite: 3.75,
      longCacheWrite: 6,
    });
  });

  test.for([
    ["openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"],
    ["openai", "gpt-4o-2024-08-06", "gpt-4o"],
    ["anthropic", "claude-sonnet-4-20250514", "claude-sonnet-4"],
    ["anthropic", "claude-opus-4-1@20250805", "claude-opus-4-1"],
    ["anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku"],
  ] as const)("of %s gives the dated %s the price of %s", ([provider, dated, id]) => {
    expect(priceOf(provider, dated)).toBe(priceOf(provider, id));
    expect(priceOf(provider, dated)).toBeDefined();
  });

  test.for([
    ["openai", "gpt-5.9"],
    ["openai", "gpt-5-enormous"],
    ["openai", "ft:gpt-4o-mini:acme"],
    ["anthropic", "claude-sonnet-4-9"],
    ["anthropic", "gpt-5"],
    ["elsewhere", "gpt-5"],
  ] as const)("of %s knows no price of %s, instead of a sibling's", ([provider, id]) => {
    expect(priceOf(provider, id)).toBeUndefined();
  });
});

describe("registerPrices", () => {
  test("adds models and replaces prices, also of a single dated id", () => {
    registerPrices({ "acme/large": { input: 1, output: 2 }, "acme/large-2026-01-01": { input: 3, output: 4 } });
    expect(priceOf("acme", "large-2026-02-02")).toEqual({ input: 1, output: 2 });
    expect(priceOf("acme", "large-2026-01-01")).toEqual({ input: 3, output: 4 });
    registerPrices({ "acme/large": { input: 5, output: 6 } });
    expect(priceOf("acme", "large")).toEqual({ input: 5, output: 6 });
  });

  test("registers nothing if one value is invalid", () => {
    const refused = expect.objectContaining({ code: "INVALID_OPTION" });
    const fine = { input: 1, output: 1 };
    expect(() => registerPrices({ "acme/fine": fine, nameless: fine })).toThrow(refused);
    expect(() => registerPrices({ "acme/fine": fine, "acme/bad": { input: Number.NaN, output: 1 } })).toThrow(refused);
    expect(priceOf("acme", "fine")).toBeUndefined();
  });

  test("keeps its own copy", () => {
    const price = { input: 1, output: 1 };
    registerPrices({ "acme/copied": price });
    price.input = 99;
    expect(priceOf("acme", "copied")?.input).toBe(1);
  });
});

describe("costOf", () => {
  const price = { input: 10, output: 100, cacheRead: 1, cacheWrite: 20 };

  test("charges fresh, cached and cache-writing input separately, per million tokens", () => {
    const usage = {
      inputTokens: 1_000_000,
      outputTokens: 10_000,
      totalTokens: 1_010_000,
      cacheReadTokens: 500_000,
      cacheWriteTokens: 100_000,
    };
    expect(costOf(usage, price)).toBeCloseTo(4 + 0.5 + 2 + 1, 10);
  });

  test("charges cached input as input if the model has no cache price", () => {
    const usage = { inputTokens: 1000, outputTokens: 0, totalTokens: 1000, cacheReadTokens: 600 };
    expect(costOf(usage, { input: 10, output: 100 })).toBeCloseTo(0.01, 10);
  });

  test("is undefined without a price, and never negative", () => {
    expect(costOf({ inputTokens: 1, outputTokens: 1, totalTokens: 2 }, undefined)).toBeUndefined();
    const tokens = fc.nat(1_000_000);
    fc.assert(
      fc.property(tokens, tokens, tokens, tokens, (inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens) => {
        const usage = { inputTokens, outputTokens, totalTokens: 0, cacheReadTokens, cacheWriteTokens };
        expect(costOf(usage, price)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 100 },
    );
  });
});
