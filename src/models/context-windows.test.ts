import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { aiSdk } from "./ai-sdk/index.ts";
import { anthropic } from "./anthropic/index.ts";
import { contextWindowOf, registerContextWindows } from "./context-windows.ts";
import { openai } from "./openai/index.ts";

describe("contextWindowOf", () => {
  test.for([
    ["openai", "gpt-4o-mini", 128_000],
    ["openai", "gpt-4.1-2025-04-14", 1_047_576],
    ["openai", "gpt-5", 272_000],
    ["openai", "gpt-5.5-2026-04-23", 922_000],
    ["anthropic", "claude-haiku-4-5-20251001", 200_000],
    ["anthropic", "claude-3-5-sonnet-latest", 200_000],
    ["anthropic", "claude-opus-4-6", 1_000_000],
  ] as const)("of %s knows that of %s", ([provider, id, tokens]) => {
    expect(contextWindowOf(provider, id)).toBe(tokens);
  });

  test.for([
    ["openai", "gpt-5-enormous"],
    ["openai", "gpt-4o-audio-preview"],
    ["openai", "gpt-4o-2024-mini"],
    ["openai", "qwen3"],
    ["anthropic", "claude-sonnet-4-9"],
    ["elsewhere", "gpt-4o"],
  ] as const)("of %s knows none of %s, instead of a sibling's", ([provider, id]) => {
    expect(contextWindowOf(provider, id)).toBeUndefined();
  });
});

describe("registerContextWindows", () => {
  test("adds models and replaces windows, for models that are created afterwards", () => {
    const before = openai("acme-1", { apiKey: "key" });
    registerContextWindows({ "openai/acme-1": 9_000, "openai/acme-1-2026-01-01": 5_000 });
    expect(before.contextWindow).toBeUndefined();
    expect(openai("acme-1-2026-02-02", { apiKey: "key" }).contextWindow).toBe(9_000);
    expect(openai("acme-1-2026-01-01", { apiKey: "key" }).contextWindow).toBe(5_000);
    registerContextWindows({ "openai/acme-1": 8_000 });
    expect(contextWindowOf("openai", "acme-1")).toBe(8_000);
  });

  test("registers nothing if one value is invalid", () => {
    const refused = expect.objectContaining({ code: "INVALID_OPTION" });
    for (const wrong of [{ nameless: 1 }, { "acme/bad": 0 }, { "acme/bad": 1.5 }, { "acme/bad": "1" as never }]) {
      expect(() => registerContextWindows({ "acme/fine": 1, ...wrong })).toThrow(refused);
    }
    expect(contextWindowOf("acme", "fine")).toBeUndefined();
  });
});

test("a model over HTTP has its known window or the given one, and none if it is unknown", () => {
  expect(anthropic("claude-haiku-4-5", { apiKey: "key" }).contextWindow).toBe(200_000);
  expect(openai("gpt-4o", { apiKey: "key", contextWindow: 32_768 }).contextWindow).toBe(32_768);
  expect("contextWindow" in openai("qwen3", { apiKey: "key" })).toBe(false);
});

test("a model of the AI SDK has the window of its provider's model, or of its maker's model behind a gateway", () => {
  const windowOf = (name: string, id: string): number | undefined =>
    aiSdk(createOpenAICompatible({ name, baseURL: "http://127.0.0.1:1" }).chatModel(id)).contextWindow;
  expect(windowOf("openai", "gpt-5-mini")).toBe(272_000);
  expect(windowOf("gateway", "anthropic/claude-haiku-4-5")).toBe(200_000);
  expect(windowOf("local", "gpt-5-mini")).toBeUndefined();
});
