import { describe, expect, test } from "vitest";
import { collect, openModelServer, type Replay, wireFixture } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { openai } from "./openai.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const body = (name: string): Replay => ({ body: wireFixture("openai", name) });
const modelAt = (url: string, id = "gpt-5-mini"): Model =>
  openai(id, { apiKey: "k", baseURL: `${url}/v1`, api: "responses" });

async function completed(name: string) {
  await using server = await openModelServer(body(name));
  return await modelAt(server.url).complete(request);
}

async function streamed(name: string) {
  await using server = await openModelServer(body(name));
  return await collect(modelAt(server.url).stream?.(request));
}

async function sentFor(asked: ModelRequest, id?: string) {
  await using server = await openModelServer(body("responses-text.json"));
  await modelAt(server.url, id).complete(asked);
  return server.asked[0]?.body ?? {};
}

const usage = { inputTokens: 900, outputTokens: 120, totalTokens: 1020, cacheReadTokens: 512, reasoningTokens: 64 };

describe("a response", () => {
  test("is an answer with usage and cost", async () => {
    expect(await completed("responses-text.json")).toEqual({
      role: "assistant",
      content: "Grüße aus Köln 🌍",
      provider: "openai",
      model: "gpt-5-mini-2025-08-07",
      usage,
      cost: (388 * 0.25 + 512 * 0.025 + 120 * 2) / 1e6,
      stopReason: "stop",
    });
  });

  test("streams its thinking, text and calls, and ends with the same reply as without streaming", async () => {
    const { deltas, reply } = await streamed("responses-tools.sse.txt");
    expect(deltas.slice(0, -1)).toEqual([
      { type: "thinking-delta", text: "Two orders," },
      { type: "thinking-delta", text: " two look-ups." },
      { type: "text-delta", text: "I " },
      { type: "text-delta", text: "look" },
      { type: "tool-call-delta", index: 0, id: "call_r1", name: "find_order" },
      { type: "tool-call-delta", index: 0, arguments: '{"num' },
      { type: "tool-call-delta", index: 0, arguments: 'ber":"47' },
      { type: "tool-call-delta", index: 0, arguments: '11","note":"🌍"}' },
      { type: "tool-call-delta", index: 1, id: "call_r2", name: "list_orders" },
    ]);
    expect(reply).toMatchObject({
      content: [
        { type: "thinking", text: "Two orders, two look-ups." },
        { type: "text", text: "I look" },
      ],
      toolCalls: [
        { id: "call_r1", name: "find_order", arguments: '{"number":"4711","note":"🌍"}' },
        { id: "call_r2", name: "list_orders", arguments: "{}" },
      ],
      usage,
      stopReason: "tool_calls",
    });
    expect((await streamed("responses-bare-end.sse.txt")).reply).toEqual(reply);
  });

  test("keeps the text of a refusal, with the stop reason content_filter", async () => {
    expect(await completed("responses-refusal.json")).toMatchObject({
      content: "I cannot help with that.",
      stopReason: "content_filter",
    });
  });

  test("that reached the token limit has the stop reason length", async () => {
    const { reply } = await streamed("responses-incomplete.sse.txt");
    expect(reply).toMatchObject({ content: "As far as", stopReason: "length", usage });
  });

  test.for([
    ["responses-failed.sse.txt", "rate_limit"],
    ["responses-error.sse.txt", "server"],
    ["responses-early-end.sse.txt", "connection"],
  ] as const)("of %s is no answer but a failure of kind %s", async ([name, kind]) => {
    await expect(streamed(name)).rejects.toMatchObject({ code: "MODEL_FAILED", kind });
  });
});

describe("a request for a response", () => {
  test("asks the provider to store nothing, and to return its thinking encrypted", async () => {
    const tool = { name: "find_order", description: "Returns one order.", parameters: { type: "object" } };
    const asked: ModelRequest = {
      messages: [{ role: "system", content: "Be brief." }, ...request.messages],
      tools: [tool],
      toolChoice: { name: "find_order" },
      thinkingLevel: "low",
      temperature: 0.5,
      maxOutputTokens: 100,
    };
    expect(await sentFor(asked)).toEqual({
      model: "gpt-5-mini",
      input: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hello" },
      ],
      store: false,
      include: ["reasoning.encrypted_content"],
      tools: [{ type: "function", ...tool, strict: false }],
      tool_choice: { type: "function", name: "find_order" },
      reasoning: { effort: "low" },
      temperature: 0.5,
      max_output_tokens: 100,
    });
    expect(await sentFor(request, "gpt-4o")).not.toHaveProperty("include");
  });

  test("sends items back verbatim, followed by the results", async () => {
    await using server = await openModelServer(body("responses-tools.json"), body("responses-text.json"));
    const model = modelAt(server.url);
    const reply = await model.complete(request);
    const results = ["call_r1", "call_r2"].map(
      (toolCallId): Message => ({
        role: "tool",
        toolCallId,
        name: "find_order",
        content: [
          { type: "text", text: "found" },
          { type: "image", mediaType: "image/png", data: "aGk=" },
        ],
      }),
    );
    await model.complete({ messages: [...request.messages, reply, ...results] });
    const { output } = JSON.parse(wireFixture("openai", "responses-tools.json").toString());
    const shown = [
      { type: "input_text", text: "found" },
      { type: "input_image", image_url: "data:image/png;base64,aGk=", detail: "auto" },
    ];
    expect(server.asked[1]?.body["input"]).toEqual([
      { role: "user", content: "hello" },
      ...output,
      { type: "function_call_output", call_id: "call_r1", output: shown },
      { type: "function_call_output", call_id: "call_r2", output: shown },
    ]);
  });

  test("does not send back thinking without encrypted content", async () => {
    const whole = JSON.parse(wireFixture("openai", "responses-tools.json").toString());
    const search = { type: "web_search_call", id: "ws_1", status: "completed" };
    const bare = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null };
    await using server = await openModelServer(
      { body: JSON.stringify({ ...whole, output: [bare, search] }) },
      { body: JSON.stringify({ ...whole, output: [bare] }) },
    );
    const model = modelAt(server.url);
    expect((await model.complete(request)).providerData).toEqual({ api: "responses", output: [search] });
    expect(await model.complete(request)).not.toHaveProperty("providerData");
  });

  test("rebuilds items for answers of others, and for answers that were changed", async () => {
    const call = { id: "c1", name: "find_order", arguments: '{"number":"1"}' };
    const foreign: Message = { role: "assistant", content: "I look.", toolCalls: [call], provider: "anthropic" };
    const changed: Message = {
      role: "assistant",
      content: "I stop.",
      provider: "openai",
      providerData: { api: "responses", output: [{ type: "function_call", call_id: "gone" }] },
    };
    const result: Message = { role: "tool", toolCallId: "c1", name: "find_order", content: "ok" };
    expect((await sentFor({ messages: [foreign, result, changed] }))["input"]).toEqual([
      { role: "assistant", content: "I look." },
      { type: "function_call", call_id: "c1", name: "find_order", arguments: '{"number":"1"}' },
      { type: "function_call_output", call_id: "c1", output: "ok" },
      { role: "assistant", content: "I stop." },
    ]);
  });

  test("refuses stop texts, which this API does not know", async () => {
    await expect(sentFor({ ...request, stop: ["END"] })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});
