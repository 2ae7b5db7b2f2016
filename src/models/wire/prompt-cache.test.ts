import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { collect, openModelServer, wireFixture } from "../../../test/model-server.ts";
import { promptCacheKey } from "../../agent/model/cache-key.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { aiSdk } from "../ai-sdk/ai-sdk.ts";
import type { CallOptions } from "../ai-sdk/contract.ts";
import { anthropic } from "../anthropic/anthropic.ts";
import { hasBreakpoints } from "../cache-rules.ts";
import { openai } from "../openai/openai.ts";
import { markedMessages } from "./prompt-cache.ts";

const user = (content: string): Message => ({ role: "user", content });
const answer = (content: string): Message => ({ role: "assistant", content });
const tool = { name: "look", description: "Looks.", parameters: { type: "object" } };
const talk: ModelRequest = {
  messages: [
    { role: "system", content: "Be brief." },
    user("one"),
    answer("1"),
    user("two"),
    { role: "assistant", content: null, toolCalls: [{ id: "c", name: "look", arguments: "{}" }] },
    { role: "tool", toolCallId: "c", name: "look", content: "nothing" },
    user("three"),
  ],
  tools: [{ ...tool, name: "first" }, tool],
  cacheKey: "the-key",
};

/** The paths of a body's values that have a mark. */
function marksIn(value: unknown, mark: string, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = Object.hasOwn(value, mark) ? [path.slice(1)] : [];
  return [...own, ...Object.entries(value).flatMap(([name, inner]) => marksIn(inner, mark, `${path}.${name}`))];
}

async function sent(
  make: (baseURL: string) => Model,
  fixture: readonly ["anthropic" | "openai", string],
  request = talk,
) {
  await using server = await openModelServer({ body: wireFixture(...fixture) });
  await make(server.url).complete(request);
  return server.asked[0]?.body ?? {};
}

const TEXT = ["anthropic", "text.json"] as const;
const CHAT = ["openai", "chat-text.json"] as const;
const RESPONSES = ["openai", "responses-text.json"] as const;
const claude = (cache?: Parameters<typeof anthropic>[1]) => (baseURL: string) =>
  anthropic("claude-opus-5", { apiKey: "k", baseURL, ...cache });

describe("a request to Anthropic", () => {
  test("marks the ends of tools, instructions, the last message, and of the request before", async () => {
    const body = await sent(claude(), TEXT);
    expect(marksIn(body, "cache_control")).toEqual([
      "system.0",
      "messages.2.content.0",
      "messages.4.content.1",
      "tools.1",
    ]);
    expect(JSON.stringify(body)).not.toContain("ttl");
    expect(JSON.stringify(body)).not.toContain("the-key");
  });

  test("sets a mark exactly where the request before had its last one", async () => {
    const before = await sent(claude(), TEXT, { ...talk, messages: talk.messages.slice(0, 4) });
    const after = await sent(claude(), TEXT);
    expect(marksIn(after, "cache_control")).toContain(marksIn(before, "cache_control").at(-2));
    expect(marksIn(before, "cache_control").at(-2)).toBe("messages.2.content.0");
  });

  test("sets the mark before the turns that a merge brought, as their answers were asked for elsewhere", async () => {
    const merged = { mergedFrom: { sessionId: "branch" } };
    const messages: Message[] = [
      { role: "system", content: "Be brief." },
      user("one"),
      answer("1"),
      { ...user("elsewhere"), metadata: merged },
      { ...answer("2"), metadata: merged },
      user("two"),
    ];
    const body = await sent(claude(), TEXT, { ...talk, messages });
    expect(marksIn(body, "cache_control")).toEqual([
      "system.0",
      "messages.0.content.0",
      "messages.4.content.0",
      "tools.1",
    ]);
    const asked: CallOptions[] = [];
    const sdk = aiSdk({
      specificationVersion: "v3",
      provider: "anthropic.messages",
      modelId: "m",
      doGenerate: async (options: CallOptions) => {
        asked.push(options);
        return { content: [{ type: "text", text: "a" }], finishReason: { unified: "stop", raw: "stop" }, usage: {} };
      },
      doStream: () => Promise.reject(new Error("not asked")),
    } as never);
    await sdk.complete({ ...talk, messages });
    expect(marksIn(asked[0]?.prompt, "cacheControl").map((path) => path.split(".")[0])).toEqual(["0", "1", "5"]);
  });

  test("asks for an hour everywhere, or for nothing", async () => {
    const hour = JSON.stringify(await sent(claude({ cache: { lifetime: "1h" } }), TEXT));
    expect(hour.split('"cache_control":{"type":"ephemeral","ttl":"1h"}')).toHaveLength(5);
    expect(JSON.stringify(await sent(claude({ cache: false }), TEXT))).not.toContain("cache_control");
  });
});

describe("a request to OpenAI", () => {
  const gpt = (id: string, options: Parameters<typeof openai>[1]) => (url: string) =>
    openai(id, { apiKey: "k", baseURL: `${url}/v1`, ...options });

  test("names its cache, and asks for a day only of models that can keep it", async () => {
    const cache = { lifetime: "24h" } as const;
    for (const [api, fixture] of [
      ["chat", CHAT],
      ["responses", RESPONSES],
    ] as const) {
      const body = await sent(gpt("gpt-5.2", { api, cache }), fixture);
      expect(body).toMatchObject({ prompt_cache_key: "the-key", prompt_cache_retention: "24h" });
      expect(marksIn(body, "prompt_cache_breakpoint")).toEqual([]);
      const later = await sent(gpt("gpt-5.6-sol", { api, cache }), fixture);
      expect(later).toMatchObject({ prompt_cache_key: "the-key" });
      expect(later).not.toHaveProperty("prompt_cache_retention");
    }
  });

  test("has breakpoints from gpt-5.6 on, at the ends of instructions, of the request before and of itself", async () => {
    const chat = await sent(gpt("gpt-5.6-sol", { cache: true }), CHAT);
    expect(marksIn(chat, "prompt_cache_breakpoint")).toEqual([
      "messages.0.content.0",
      "messages.3.content.0",
      "messages.6.content.0",
    ]);
    const responses = await sent(gpt("gpt-5.6-sol", { api: "responses", cache: true }), RESPONSES);
    expect(marksIn(responses, "prompt_cache_breakpoint")).toEqual([
      "input.0.content.0",
      "input.3.content.0",
      "input.6.content.0",
    ]);
    expect(responses).toMatchObject({
      input: [{}, {}, { role: "assistant", content: "1" }, {}, {}, { output: [{}] }, {}],
    });
    expect(["gpt-5.6", "gpt-5.10-sol", "gpt-6-luna", "gpt-10"].map(hasBreakpoints)).toEqual([true, true, true, true]);
    expect(["gpt-5", "gpt-5.5", "gpt-4.1", "o3", "llama"].map(hasBreakpoints)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });

  test("has none of these fields at an unknown endpoint, nor if caching is off", async () => {
    for (const cache of [undefined, false] as const) {
      const body = JSON.stringify(await sent(gpt("gpt-5.6-sol", cache === undefined ? {} : { cache }), CHAT));
      expect(body).not.toContain("prompt_cache");
    }
  });
});

describe("a request through the AI SDK", () => {
  const asked: CallOptions[] = [];
  const sdk = (provider: string) => ({
    specificationVersion: "v3" as const,
    provider,
    modelId: "m",
    async doGenerate(options: CallOptions) {
      asked.push(options);
      return { content: [{ type: "text", text: "a" }], finishReason: { unified: "stop", raw: "stop" }, usage: {} };
    },
    doStream: () => Promise.reject(new Error("not asked")),
  });
  const optionsOf = async (provider: string, cache?: Parameters<typeof aiSdk>[1]) => {
    asked.length = 0;
    await aiSdk(sdk(provider), cache).complete(talk);
    return asked[0] as CallOptions;
  };

  test("has the same marks for Anthropic, and the key for OpenAI", async () => {
    const marked = await optionsOf("anthropic.messages", { cache: { lifetime: "1h" } });
    expect(marksIn(marked, "cacheControl")).toEqual([
      "prompt.0.providerOptions.anthropic",
      "prompt.3.providerOptions.anthropic",
      "prompt.6.providerOptions.anthropic",
      "tools.1.providerOptions.anthropic",
    ]);
    expect(JSON.stringify(marked).split('"ttl":"1h"')).toHaveLength(5);
    const named = await optionsOf("openai.responses", { cache: { lifetime: "24h" } });
    expect(named.providerOptions).toEqual({ openai: { promptCacheKey: "the-key", promptCacheRetention: "24h" } });
    for (const [provider, cache] of [
      ["acme.chat", true],
      ["anthropic.messages", false],
      ["openai.chat", false],
    ] as const)
      expect(JSON.stringify(await optionsOf(provider, { cache }))).not.toMatch(/cacheControl|promptCache/);
  });

  test("reads all that Anthropic counts, of which the AI SDK counts only some", async () => {
    const usage = {
      input_tokens: 10,
      output_tokens: 5,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 50,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 },
    };
    const model = {
      ...sdk("anthropic.messages"),
      async doGenerate() {
        const counted = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 100 };
        const metadata = { anthropic: { usage } };
        return {
          content: [{ type: "text", text: "a" }],
          finishReason: "stop",
          usage: counted,
          providerMetadata: metadata,
        };
      },
    };
    const prices = { input: 1, output: 0, cacheRead: 0, cacheWrite: 10, longCacheWrite: 100 };
    const reply = await aiSdk({ ...model, specificationVersion: "v2" }, { prices }).complete(talk);
    expect(reply.usage).toMatchObject({
      inputTokens: 160,
      cacheReadTokens: 100,
      cacheWriteTokens: 50,
      totalTokens: 165,
    });
    expect(reply.cost).toBeCloseTo((10 + 20 * 10 + 30 * 100) / 1e6, 12);
  });
});

describe("the tokens written to a cache", () => {
  test("is counted on the Responses wire, whole and streamed", async () => {
    const whole = JSON.parse(wireFixture("openai", "responses-text.json").toString());
    whole.usage.input_tokens_details.cache_write_tokens = 77;
    await using server = await openModelServer({ body: Buffer.from(JSON.stringify(whole)) });
    const model = openai("gpt-5.6", { apiKey: "k", baseURL: `${server.url}/v1`, api: "responses" });
    expect((await model.complete(talk)).usage).toMatchObject({ cacheReadTokens: 512, cacheWriteTokens: 77 });
    const completed = { type: "response.completed", response: whole };
    const body = Buffer.from(`event: response.completed\ndata: ${JSON.stringify(completed)}\n\n`);
    await using streaming = await openModelServer({ headers: { "content-type": "text/event-stream" }, body });
    const streamed = openai("gpt-5.6", { apiKey: "k", baseURL: `${streaming.url}/v1`, api: "responses" });
    expect((await collect(streamed.stream?.(talk))).reply?.usage).toMatchObject({ cacheWriteTokens: 77 });
  });

  test("for an hour is charged as that, and counted if only the counts by lifetime come", async () => {
    const whole = JSON.parse(wireFixture("anthropic", "text.json").toString());
    whole.usage = {
      input_tokens: 1,
      output_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 1000 },
    };
    await using server = await openModelServer({ body: Buffer.from(JSON.stringify(whole)) });
    const reply = await claude()(server.url).complete(talk);
    expect(reply.usage).toMatchObject({ inputTokens: 1011, cacheWriteTokens: 1010 });
    expect(reply.cost).toBeCloseTo((1 * 1 + 10 * 1.25 + 1000 * 2) / 1e6, 12);
  });
});

test("a model of an endpoint that is compatible with OpenAI gets no options of OpenAI through the AI SDK", async () => {
  await using server = await openModelServer({ body: wireFixture("openai", "chat-text.json") });
  const provider = createOpenAICompatible({ name: "local", apiKey: "k", baseURL: `${server.url}/v1` });
  await aiSdk(provider.chatModel("m")).complete(talk);
  expect(Object.keys(server.asked[0]?.body ?? {}).join()).not.toContain("ache");
});

test("a model says how long its provider keeps what it caches", () => {
  const key = { apiKey: "k" };
  const sdk = (provider: string, modelId: string) => ({
    specificationVersion: "v3" as const,
    provider,
    modelId,
    doGenerate: () => Promise.reject(new Error("not asked")),
    doStream: () => Promise.reject(new Error("not asked")),
  });
  const minutesOf = ({ cacheLifetimeMs = 0 }: Model): number => cacheLifetimeMs / 60_000;
  const hour = { cache: { lifetime: "1h" } } as const;
  const day = { cache: { lifetime: "24h" } } as const;
  expect([anthropic("claude-opus-5", key), anthropic("claude-opus-5", { ...key, ...hour })].map(minutesOf)).toEqual([
    5, 60,
  ]);
  expect(
    ["gpt-5.2", "gpt-5.5", "gpt-5.6"].map((id) => [openai(id, key), openai(id, { ...key, ...day })].map(minutesOf)),
  ).toEqual([
    [5, 1440],
    [1440, 1440],
    [30, 30],
  ]);
  const sdkModels = [
    aiSdk(sdk("anthropic.messages", "claude-opus-5"), hour),
    aiSdk(sdk("openai.responses", "gpt-5.2"), day),
    aiSdk(sdk("acme.chat", "gpt-5.2"), day),
  ];
  expect(sdkModels.map(minutesOf)).toEqual([60, 1440, 5]);
});

test("an invalid cache option is refused, and one with a lifetime that the provider does not support", () => {
  for (const cache of ["1h", { lifetime: "24h" }, { lifetime: "5m", more: 1 }, null])
    expect(() => anthropic("m", { apiKey: "k", cache: cache as never })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining('"5m" or "1h"') }),
    );
});

test("the marks of a request are at its last message and where the request before ended", () => {
  expect(markedMessages([])).toEqual({ last: -1, before: -1 });
  expect(markedMessages(["system", "user"])).toEqual({ last: 1, before: -1 });
  expect(markedMessages(["user", "assistant", "tool", "tool", "user"])).toEqual({ last: 4, before: 0 });
  expect(markedMessages(["user", "assistant", "assistant", "user", "system"])).toEqual({ last: 3, before: 0 });
  expect(markedMessages(["user", "assistant", "user", "merged", "user", "merged", "user"])).toEqual({
    last: 6,
    before: 0,
  });
  expect(markedMessages(["user", "assistant", "user", "merged"])).toEqual({ last: 2, before: 0 });
});

test("a cache key differs by session and user, and reveals neither", () => {
  const keys = [
    promptCacheKey("a", null),
    promptCacheKey("a", "b"),
    promptCacheKey("b", "a"),
    promptCacheKey("a", "b"),
  ];
  expect(new Set(keys).size).toBe(3);
  expect(keys[1]).toMatch(/^[0-9a-f]{32}$/);
});
