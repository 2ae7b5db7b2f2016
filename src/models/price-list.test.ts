import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createAgent } from "../agent/agent.ts";
import { anthropic } from "./anthropic/anthropic.ts";
import { openai } from "./openai/openai.ts";
import { loadPricesOfEnvironment, pricesIn } from "./price-list.ts";
import { priceOf, registerPrices } from "./prices.ts";
import { scripted } from "./scripted.ts";

const liteLlm = {
  sample_spec: { input_cost_per_token: 0, litellm_provider: "one of https://…" },
  "made-up-1": {
    litellm_provider: "acme",
    input_cost_per_token: 3e-7,
    output_cost_per_token: 1.5e-6,
    cache_read_input_token_cost: 3e-8,
    cache_creation_input_token_cost: 3.75e-7,
    cache_creation_input_token_cost_above_1hr: 6e-7,
  },
  "acme/made-up-2": { litellm_provider: "acme", input_cost_per_token: 1e-6, output_cost_per_token: 0 },
  "made-up-images": { litellm_provider: "acme", output_cost_per_image: 1 },
  "made-up-wrong": { litellm_provider: "acme", input_cost_per_token: -1, output_cost_per_token: "free" },
};

const modelsDev = {
  acme: {
    id: "acme",
    models: {
      "made-up-3": { id: "made-up-3", cost: { input: 2, output: 10, cache_read: 0.2, cache_write: 2.5 } },
      "made-up-free": { id: "made-up-free", cost: { input: 0, output: 0 } },
      "made-up-unknown": { id: "made-up-unknown" },
    },
  },
};

test("a list of LiteLLM gives prices of a million tokens, by provider and model", () => {
  expect(pricesIn(liteLlm, "list")).toEqual({
    "acme/made-up-1": { input: 0.3, output: 1.5, cacheRead: 0.03, cacheWrite: 0.375, longCacheWrite: 0.6 },
    "acme/made-up-2": { input: 1, output: 0 },
  });
});

test("a list of models.dev gives the prices that it has", () => {
  expect(pricesIn(modelsDev, "list")).toEqual({
    "acme/made-up-3": { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 },
    "acme/made-up-free": { input: 0, output: 0 },
  });
});

test("a value that is no list of prices is refused with its name", () => {
  for (const wrong of [null, [], "prices", {}, { acme: { models: {} } }, { a: { input: 1, output: 1 } }])
    expect(() => pricesIn(wrong, "The thing")).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining("The thing has no prices") }),
    );
});

test("the file of SKEIN_PRICES is registered when a model is made, and a wrong one refuses that", async () => {
  const folder = await mkdtemp(join(tmpdir(), "prices-"));
  try {
    vi.stubEnv("SKEIN_PRICES", join(folder, "missing.json"));
    expect(() => openai("made-up", { apiKey: "k" })).toThrow(/missing\.json" of SKEIN_PRICES cannot be read as JSON/);
    await writeFile(join(folder, "half.json"), "{");
    vi.stubEnv("SKEIN_PRICES", join(folder, "half.json"));
    expect(() => anthropic("made-up", { apiKey: "k" })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    await writeFile(join(folder, "prices.json"), JSON.stringify(modelsDev));
    vi.stubEnv("SKEIN_PRICES", join(folder, "prices.json"));
    expect(priceOf("acme", "made-up-3")).toBeUndefined();
    openai("made-up", { apiKey: "k" });
    expect(priceOf("acme", "made-up-3")).toEqual({ input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 });
    registerPrices({ "acme/made-up-3": { input: 9, output: 9 } });
    loadPricesOfEnvironment();
    expect(priceOf("acme", "made-up-3")).toEqual({ input: 9, output: 9 });
  } finally {
    vi.unstubAllEnvs();
  }
});

test("a run with a budget in cost is refused before it asks a model without a price", async () => {
  const model = openai("made-up-model", { apiKey: "k", baseURL: "http://127.0.0.1:1" });
  const agent = createAgent({ prompt: "", model });
  expect(() => agent.run("hi", { budget: { cost: 1 } })).toThrow(
    expect.objectContaining({ code: "PRICE_UNKNOWN", message: expect.stringContaining('"openai/made-up-model"') }),
  );
  const compaction = { model };
  expect(() => agent.run("hi", { model: scripted(["ok"]), compaction, budget: { cost: 1 } })).toThrow(
    expect.objectContaining({ code: "PRICE_UNKNOWN" }),
  );
  const priced = openai("made-up-model", {
    apiKey: "k",
    baseURL: "http://127.0.0.1:1",
    prices: { input: 1, output: 1 },
  });
  await expect(agent.run("hi", { model: priced, budget: { cost: 1 }, retry: { attempts: 1 } })).rejects.toMatchObject({
    code: "MODEL_FAILED",
  });
  await expect(agent.run("hi", { budget: { totalTokens: 9 }, retry: { attempts: 1 } })).rejects.toMatchObject({
    code: "MODEL_FAILED",
  });
  // A model that reports a cost, or may do so, is asked.
  const own = await agent.run("hi", { model: scripted(["ok"]), budget: { cost: 1 } });
  expect(own.text()).toBe("ok");
  registerPrices({ "openai/made-up-model": { input: 1, output: 1 } });
  expect(model.reportsCost).toBe(true);
});
