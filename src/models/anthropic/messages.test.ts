import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collect, openModelServer, type Replay, wireFixture } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { listOf } from "../wire/json-reader.ts";
import { anthropic } from "./anthropic.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const body = (name: string): Replay => ({ body: wireFixture("anthropic", name) });
const modelAt = (url: string): Model => anthropic("claude-haiku-4-5", { apiKey: "k", baseURL: url, cache: false });

async function completed(replay: Replay) {
  await using server = await openModelServer(replay);
  return await modelAt(server.url).complete(request);
}

async function streamed(replay: Replay) {
  await using server = await openModelServer(replay);
  return await collect(modelAt(server.url).stream?.(request));
}

// 21 fresh, 188 written and 2,048 read input tokens: the API counts them separately, a usage adds them up.
const usage = {
  inputTokens: 2257,
  outputTokens: 305,
  totalTokens: 2562,
  cacheReadTokens: 2048,
  cacheWriteTokens: 188,
};

describe("a message", () => {
  test("is an answer with all its input tokens and its cost, whole or streamed", async () => {
    const answer = {
      role: "assistant",
      content: "Grüße aus Köln 🌍",
      provider: "anthropic",
      model: "claude-haiku-4-5-20251001",
      usage,
      cost: (21 * 1 + 2048 * 0.1 + 188 * 1.25 + 305 * 5) / 1e6,
      stopReason: "stop",
    };
    expect(await completed(body("text.json"))).toEqual(answer);
    const { deltas, reply } = await streamed(body("text.sse.txt"));
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
    expect(await completed(body("refusal.json"))).toMatchObject(refused);
    expect((await streamed(body("refusal.sse.txt"))).reply).toMatchObject(refused);
  });

  test("keeps the token counts of its start if its end has none", async () => {
    const { reply } = await streamed(body("refusal.sse.txt"));
    expect(reply?.usage).toEqual({ ...usage, outputTokens: 9, totalTokens: 2266 });
  });

  test("with calls gives their input as JSON, and holds nothing twice", async () => {
    const reply = await completed(body("tools.json"));
    expect(reply).toMatchObject({
      content: "I look it up.",
      toolCalls: [{ id: "toolu_01A09q", name: "find_order", arguments: '{"number":"4711","tags":["a","b"]}' }],
      stopReason: "tool_calls",
    });
    expect(reply).not.toHaveProperty("providerData");
  });
});

describe("tool calls of a message stream", () => {
  test("come in pieces that add up to their arguments, and to {} for none", async () => {
    const { deltas, reply } = await streamed(body("tools.sse.txt"));
    expect(reply?.toolCalls).toEqual([
      { id: "toolu_01A", name: "get_weather", arguments: '{"city":"Köln","when":"2026-01-01"}' },
      { id: "toolu_01B", name: "send_card", arguments: '{"emoji":"🌍🌦️","n":[1,2]}' },
      { id: "toolu_01C", name: "list_orders", arguments: "{}" },
    ]);
    expect(reply).toMatchObject({ content: "I look.", usage, stopReason: "tool_calls" });
    expect(deltas[1]).toEqual({ type: "tool-call-delta", index: 0, id: "toolu_01A", name: "get_weather" });
    const pieces = deltas.flatMap((delta) =>
      delta.type === "tool-call-delta" && delta.index === 1 ? [delta.arguments ?? ""] : [],
    );
    expect(pieces).toEqual(["", '{"em', 'oji":"🌍', '🌦️","n":[1,', "2]}"]);
  });

  test("are the same wherever the bytes are cut, also within a character", async () => {
    const bytes = wireFixture("anthropic", "tools.sse.txt");
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

  test("keep arguments that were cut off at the token limit as they were written", async () => {
    const { reply } = await streamed(body("cut-arguments.sse.txt"));
    expect(reply).toMatchObject({ stopReason: "length", toolCalls: [{ arguments: '{"number": "47' }] });
  });
});

describe("thinking", () => {
  const { content: blocks } = JSON.parse(wireFixture("anthropic", "thinking.json").toString());
  const result: Message = { role: "tool", toolCallId: "toolu_01A", name: "find_order", content: "found" };

  test("has its signature, and the blocks are kept in order, whole or streamed", async () => {
    const whole = await completed(body("thinking.json"));
    expect(whole.content).toEqual([
      { type: "thinking", text: "Two look-ups are needed.", signature: "EqQBCgIYAhIM1gbcDa9GJwZA" },
      { type: "text", text: "I look." },
      { type: "text", text: "Then I tell you." },
    ]);
    expect(whole.providerData).toEqual(blocks);
    expect(whole.usage).toEqual({ ...usage, reasoningTokens: 77 });
    const { deltas, reply } = await streamed(body("thinking.sse.txt"));
    // The stream keeps the whitespace of the arguments.
    expect(reply).toEqual({ ...whole, toolCalls: [{ ...whole.toolCalls?.[0], arguments: '{"number": "4711"}' }] });
    expect(deltas.slice(0, 2)).toEqual([
      { type: "thinking-delta", text: "Two look-ups" },
      { type: "thinking-delta", text: " are needed." },
    ]);
  });

  test("goes back verbatim to the provider that wrote it, redacted parts too", async () => {
    await using server = await openModelServer(body("thinking.sse.txt"), body("text.json"));
    const model = modelAt(server.url);
    const { reply } = await collect(model.stream?.(request));
    await model.complete({ messages: [...request.messages, ...(reply === undefined ? [] : [reply]), result] });
    expect(server.asked[1]?.body["messages"]).toEqual([
      { role: "user", content: [{ type: "text", text: "hello" }] },
      { role: "assistant", content: blocks },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_01A", content: [{ type: "text", text: "found" }] }],
      },
    ]);
  });

  test("is omitted from a message whose calls were removed", async () => {
    await using server = await openModelServer(body("thinking.json"), body("text.json"));
    const model = modelAt(server.url);
    const { toolCalls: _, ...shortened } = await model.complete(request);
    await model.complete({ messages: [...request.messages, shortened, { role: "user", content: "go on" }] });
    expect(listOf(server.asked[1]?.body["messages"])[1]).toEqual({
      role: "assistant",
      content: [blocks[0], blocks[2], blocks[4]],
    });
  });
});
