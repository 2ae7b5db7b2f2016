import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collect, openModelServer, type Replay, wireFixture } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import { listOf } from "../wire/json-reader.ts";
import { openai } from "./openai.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const body = (name: string): Replay => ({ body: wireFixture("openai", name) });
const modelAt = (url: string, id = "gpt-4o-mini"): Model => openai(id, { apiKey: "k", baseURL: `${url}/v1` });

async function completed(replay: Replay, id?: string) {
  await using server = await openModelServer(replay);
  return await modelAt(server.url, id).complete(request);
}

async function streamed(replay: Replay, id?: string) {
  await using server = await openModelServer(replay);
  return await collect(modelAt(server.url, id).stream?.(request));
}

const usage = {
  inputTokens: 1200,
  outputTokens: 40,
  totalTokens: 1240,
  cacheReadTokens: 1024,
  reasoningTokens: 16,
};
// 176 fresh and 1,024 cached input tokens and 40 output tokens of gpt-4o-mini.
const cost = (176 * 0.15 + 1024 * 0.075 + 40 * 0.6) / 1e6;

describe("a chat completion", () => {
  test("is an answer with usage and cost, whole or streamed", async () => {
    const answer = {
      role: "assistant",
      content: "Grüße aus Köln 🌍",
      provider: "openai",
      model: "gpt-4o-mini-2024-07-18",
      usage,
      cost,
      stopReason: "stop",
    };
    expect(await completed(body("chat-text.json"))).toEqual(answer);
    const { deltas, reply } = await streamed(body("chat-text.sse.txt"));
    expect(reply).toEqual(answer);
    expect(deltas).toEqual([
      { type: "text-delta", text: "Grüße" },
      { type: "text-delta", text: " aus Köln" },
      { type: "text-delta", text: " 🌍" },
      { type: "finish", stopReason: "stop", usage, reply: answer },
    ]);
  });

  test("keeps the text of a refusal, with the stop reason content_filter", async () => {
    const refused = { content: "I cannot help with that.", stopReason: "content_filter" };
    expect(await completed(body("chat-refusal.json"))).toMatchObject(refused);
    const { deltas, reply } = await streamed(body("chat-refusal.sse.txt"));
    expect(reply).toMatchObject(refused);
    expect(deltas[0]).toEqual({ type: "text-delta", text: "I cannot" });
    expect(await completed(body("chat-filtered.json"))).toMatchObject({
      content: "The beginning of",
      stopReason: "content_filter",
    });
  });

  test("without token counts has no usage and no cost, instead of zero", async () => {
    const reply = await completed(body("chat-no-usage.json"));
    expect(reply).toEqual({
      role: "assistant",
      content: "hello",
      provider: "openai",
      model: "local-model",
      stopReason: "length",
    });
  });

  test("is read from endpoints that send text parts and use other names for cache counts", async () => {
    const message = {
      role: "assistant",
      content: [
        { type: "text", text: "hel" },
        { type: "text", text: "lo" },
      ],
    };
    const counted = { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 };
    const answer = { choices: [{ message, finish_reason: "stop" }], usage: counted };
    const reply = await completed({ body: JSON.stringify(answer) }, "elsewhere");
    expect(reply).toMatchObject({ content: "hello", model: "elsewhere" });
    expect(reply.usage).toEqual({ inputTokens: 9, outputTokens: 1, totalTokens: 10, cacheReadTokens: 4 });
    const written = { ...counted, prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 5 } };
    const other = await completed({ body: JSON.stringify({ ...answer, usage: written }) });
    expect(other.usage).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 5 });
  });

  test("with a forced tool call has the stop reason tool_calls, and {} for no arguments", async () => {
    expect(await completed(body("chat-forced-tool.json"))).toMatchObject({
      content: null,
      stopReason: "tool_calls",
      toolCalls: [{ id: "call_f1", name: "find_order", arguments: "{}" }],
    });
  });
});

describe("tool calls of a chat stream", () => {
  const toolCalls = [
    { id: "call_a", name: "get_weather", arguments: '{"city":"Köln","when":"2026-01-01"}' },
    { id: "call_b", name: "send_card", arguments: '{"emoji":"🌍🌦️","n":[1,2]}' },
    { id: "call_c", name: "list_orders", arguments: "{}" },
  ];

  test("are assembled from interleaved chunks", async () => {
    const { deltas, reply } = await streamed(body("chat-tools.sse.txt"));
    expect(reply).toMatchObject({ content: null, toolCalls, stopReason: "tool_calls" });
    expect(deltas[0]).toEqual({ type: "tool-call-delta", index: 0, id: "call_a", name: "get_weather" });
    const pieces = deltas.flatMap((delta) =>
      delta.type === "tool-call-delta" && delta.index === 1 ? [delta.arguments ?? ""] : [],
    );
    expect(pieces.join("")).toBe(toolCalls[1]?.arguments);
  });

  test("are the same wherever the bytes are cut, also within a character", async () => {
    const bytes = wireFixture("openai", "chat-tools.sse.txt");
    const emoji = bytes.indexOf(Buffer.from("🌍"));
    const whole = await streamed({ body: bytes });
    const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const sorted = [...places, emoji + 1, emoji + 3].sort((a, b) => a - b);
        expect(await streamed({ body: bytes, cuts: sorted })).toEqual(whole);
      }),
      { numRuns: 15 },
    );
  });

  test("are distinguished by their ids on endpoints with wrong or missing indexes", async () => {
    const { reply } = await streamed(body("chat-loose-calls.sse.txt"));
    expect(reply?.toolCalls).toEqual([
      { id: "one", name: "a", arguments: '{"x":1}' },
      { id: "two", name: "b", arguments: '{"y":2}' },
      { id: "three", name: "c", arguments: '{"z":3}' },
    ]);
    expect(reply?.stopReason).toBe("tool_calls");
  });
});

test("thinking from an endpoint is sent back to the same model, and to no other", async () => {
  await using server = await openModelServer(body("chat-thinking.sse.txt"), body("chat-text.json"));
  const model = modelAt(server.url, "deep-thinker");
  const { deltas, reply } = await collect(model.stream?.(request));
  expect(deltas[0]).toEqual({ type: "thinking-delta", text: "The user " });
  expect(reply?.content).toEqual([
    { type: "thinking", text: "The user wants weather." },
    { type: "text", text: "Let me look." },
  ]);
  const result = { role: "tool", toolCallId: "call_t", name: "get_weather", content: "sunny" } as const;
  const messages = [...request.messages, ...(reply === undefined ? [] : [reply]), result];
  await model.complete({ messages });
  await modelAt(server.url, "gpt-4o-mini").complete({ messages });
  const sent = (index: number) => listOf(server.asked[index]?.body["messages"])[1];
  expect(sent(1)).toEqual({
    role: "assistant",
    content: "Let me look.",
    reasoning_content: "The user wants weather.",
    tool_calls: [{ id: "call_t", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }],
  });
  expect(sent(2)).not.toHaveProperty("reasoning_content");
});
