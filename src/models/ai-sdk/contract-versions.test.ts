import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { collect } from "../../../test/model-server.ts";
import type { ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { aiSdk } from "./ai-sdk.ts";
import type { Block, CallOptions, FinishReason, TokenCounts, StreamPart } from "./contract.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const grouped: TokenCounts = {
  inputTokens: { total: 10, noCache: 3, cacheRead: 5, cacheWrite: 2 },
  outputTokens: { total: 7, text: 4, reasoning: 3 },
};
const flat: TokenCounts = {
  inputTokens: 10,
  outputTokens: 7,
  totalTokens: 20,
  reasoningTokens: 3,
  cachedInputTokens: 5,
};
const stop: FinishReason = { unified: "stop", raw: "end_turn" };

/** A model like those of the AI SDK's provider packages, which returns one answer and records its prompts. */
function provider(
  answer: {
    content?: readonly Block[];
    finishReason?: FinishReason;
    usage?: TokenCounts;
    parts?: readonly StreamPart[];
  },
  specificationVersion: "v2" | "v3" = "v3",
) {
  const asked: CallOptions[] = [];
  const { content = [], finishReason = stop, usage = grouped, parts = [] } = answer;
  return {
    asked,
    specificationVersion,
    provider: "acme.messages",
    modelId: "m",
    async doGenerate(options: CallOptions) {
      asked.push(options);
      return { content, finishReason, usage, warnings: [] };
    },
    async doStream(options: CallOptions) {
      asked.push(options);
      return { stream: ReadableStream.from(parts) as ReadableStream<StreamPart> };
    },
  };
}

const finish: StreamPart = { type: "finish", finishReason: { unified: "stop", raw: "end_turn" }, usage: grouped };

describe("an AI SDK model", () => {
  test("reads token counts in both versions of the contract, and leaves missing ones out", async () => {
    const spent = async (usage: TokenCounts, version?: "v2") =>
      (await aiSdk(provider({ usage, content: [{ type: "text", text: "a" }] }, version)).complete(request)).usage;
    expect(await spent(grouped)).toEqual({
      inputTokens: 10,
      outputTokens: 7,
      totalTokens: 17,
      cacheReadTokens: 5,
      cacheWriteTokens: 2,
      reasoningTokens: 3,
    });
    expect(await spent(flat, "v2")).toEqual({
      inputTokens: 10,
      outputTokens: 7,
      totalTokens: 20,
      cacheReadTokens: 5,
      reasoningTokens: 3,
    });
    const none = undefined;
    const unknown = { total: none, noCache: none, cacheRead: none, cacheWrite: none };
    const silent = { total: none, text: none, reasoning: none };
    expect(await spent({ inputTokens: unknown, outputTokens: silent })).toBeUndefined();
    expect(await spent({ inputTokens: { ...unknown, noCache: 3, cacheRead: 4 }, outputTokens: silent })).toEqual({
      inputTokens: 7,
      outputTokens: 0,
      totalTokens: 7,
      cacheReadTokens: 4,
    });
    expect(await spent({ inputTokens: none, outputTokens: none, totalTokens: none }, "v2")).toBeUndefined();
  });

  test.for<[FinishReason, string, boolean?]>([
    [stop, "stop"],
    [{ unified: "stop", raw: "stop" }, "tool_calls", true],
    [{ unified: "length", raw: "max_tokens" }, "length"],
    [{ unified: "content-filter", raw: "refusal" }, "content_filter"],
    [{ unified: "tool-calls", raw: "tool_use" }, "tool_calls", true],
    [{ unified: "other", raw: "odd" }, "stop"],
    ["length", "length"],
    ["unknown", "stop"],
  ])("maps the finish reason %j to %j", async ([finishReason, stopReason, calls = false]) => {
    const call: Block = { type: "tool-call", toolCallId: "c", toolName: "t", input: "{}" };
    const content: Block[] = calls ? [call] : [{ type: "text", text: "a" }];
    expect((await aiSdk(provider({ finishReason, content })).complete(request)).stopReason).toBe(stopReason);
  });

  test("fails for an answer that ends with an error, and for a stream that ends without a reason", async () => {
    const finishReason = { unified: "error", raw: undefined } as const;
    await expect(aiSdk(provider({ finishReason })).complete(request)).rejects.toMatchObject({ kind: "other" });
    const cut: StreamPart[] = [{ type: "text-delta", id: "1", delta: "half" }];
    const vague: StreamPart = { ...finish, finishReason: { unified: "other", raw: undefined } } as StreamPart;
    for (const parts of [cut, [...cut, vague]]) {
      const stream = aiSdk(provider({ parts })).stream?.(request);
      await expect(collect(stream)).rejects.toMatchObject({ kind: "connection", retryable: true });
    }
  });

  test.for<[unknown, string]>([
    [Object.assign(new Error("No audio."), { name: "AI_UnsupportedFunctionalityError" }), "invalid_request"],
    [Object.assign(new Error("Set the key."), { name: "AI_LoadAPIKeyError" }), "authentication"],
    [Object.assign(new Error("It was empty."), { name: "AI_EmptyResponseBodyError" }), "malformed"],
    [new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) }), "connection"],
    [{ type: "overloaded_error", message: "Busy." }, "overloaded"],
    ["It broke.", "other"],
  ])("classifies the failure of %s", async ([error, kind]) => {
    const stream = aiSdk(provider({ parts: [{ type: "error", error }] })).stream?.(request);
    await expect(collect(stream)).rejects.toMatchObject({ kind, message: expect.stringMatching(/\.$/) });
  });

  test("sends provider data back to its provider: signatures, calls of its own tools, and their order", async () => {
    const metadata = { acme: { signature: "c2ln" } };
    const content: Block[] = [
      { type: "reasoning", text: "hm", providerMetadata: metadata },
      { type: "text", text: "first" },
      { type: "tool-call", toolCallId: "s1", toolName: "search", input: '{"q":1}', providerExecuted: true },
      { type: "tool-result", toolCallId: "s1", toolName: "search", result: { found: 2 } },
      { type: "source", sourceType: "url", id: "u", url: "https://example.com" },
      { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2]) },
      { type: "text", text: "second" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"at":1}', providerMetadata: metadata },
    ];
    const model = provider({ content });
    const reply = await aiSdk(model).complete(request);
    expect(reply.content).toEqual([
      { type: "thinking", text: "hm" },
      { type: "text", text: "first" },
      { type: "image", mediaType: "image/png", data: "AQI=" },
      { type: "text", text: "second" },
    ]);
    expect(reply.toolCalls).toEqual([{ id: "c1", name: "look", arguments: '{"at":1}' }]);
    const kept = JSON.parse(JSON.stringify(reply)) as Message;
    const result: Message = { role: "tool", toolCallId: "c1", name: "look", content: "x" };
    await aiSdk(model).complete({ messages: [...request.messages, kept, result] });
    expect(model.asked[1]?.prompt[1]).toEqual({
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm", providerOptions: metadata },
        { type: "text", text: "first" },
        { type: "tool-call", toolCallId: "s1", toolName: "search", input: { q: 1 }, providerExecuted: true },
        { type: "tool-result", toolCallId: "s1", toolName: "search", output: { type: "json", value: { found: 2 } } },
        { type: "file", mediaType: "image/png", data: "AQI=" },
        { type: "text", text: "second" },
        { type: "tool-call", toolCallId: "c1", toolName: "look", input: { at: 1 }, providerOptions: metadata },
      ],
    });
  });

  test("assembles a stream to the same answer as without streaming, with the metadata of every part", async () => {
    const parts: StreamPart[] = [
      { type: "stream-start", warnings: [] },
      { type: "response-metadata", modelId: "m-2" },
      { type: "reasoning-start", id: "0", providerMetadata: { acme: { block: 1 } } },
      { type: "reasoning-delta", id: "0", delta: "hm" },
      { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { acme: { signature: "c2ln" } } },
      { type: "reasoning-end", id: "0" },
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "a" },
      { type: "text-end", id: "0" },
      { type: "tool-input-start", id: "s1", toolName: "search", providerExecuted: true },
      { type: "tool-input-delta", id: "s1", delta: "{}" },
      { type: "tool-call", toolCallId: "s1", toolName: "search", input: "{}", providerExecuted: true },
      { type: "tool-result", toolCallId: "s1", toolName: "search", result: "r", isError: true },
      { type: "tool-input-start", id: "c1", toolName: "look" },
      { type: "tool-input-delta", id: "c1", delta: '{"a"' },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"a":1}', providerMetadata: { acme: { k: 1 } } },
      { type: "tool-call", toolCallId: "c2", toolName: "look", input: "" },
      { type: "text-start", id: "1" },
      { type: "text-end", id: "1" },
      finish,
    ];
    const { deltas, reply } = await collect(aiSdk(provider({ parts })).stream?.(request));
    expect(deltas.slice(0, -1)).toEqual([
      { type: "thinking-delta", text: "hm" },
      { type: "text-delta", text: "a" },
      { type: "tool-call-delta", index: 0, id: "c1", name: "look" },
      { type: "tool-call-delta", index: 0, arguments: '{"a"' },
      { type: "tool-call-delta", index: 0, arguments: ":1}" },
      { type: "tool-call-delta", index: 1, id: "c2", name: "look" },
    ]);
    expect(reply).toMatchObject({ model: "m-2", stopReason: "tool_calls" });
    expect(reply?.content).toEqual([
      { type: "thinking", text: "hm" },
      { type: "text", text: "a" },
    ]);
    expect(reply?.providerData).toEqual({
      aiSdkParts: [
        { type: "reasoning", text: "hm", providerOptions: { acme: { block: 1, signature: "c2ln" } } },
        { type: "text", text: "a" },
        { type: "tool-call", toolCallId: "s1", toolName: "search", input: {}, providerExecuted: true },
        { type: "tool-result", toolCallId: "s1", toolName: "search", output: { type: "error-json", value: "r" } },
        { type: "tool-call", toolCallId: "c1", toolName: "look", input: { a: 1 }, providerOptions: { acme: { k: 1 } } },
        { type: "tool-call", toolCallId: "c2", toolName: "look", input: {} },
      ],
    });
  });

  test("converts tool results to parts of either version, with notes for files that cannot be shown", async () => {
    const image = { type: "image", mediaType: "image/png", data: "aGk=" } as const;
    const file = { type: "file", mediaType: "application/pdf", data: "aGk=", name: "a.pdf" } as const;
    const text = { type: "text", text: "seen" } as const;
    const result = (content: Message["content"], isError = false): Message => {
      return { role: "tool", toolCallId: "c1", name: "look", content: content ?? "", isError };
    };
    const outputs = async (version: "v2" | "v3", ...messages: Message[]) => {
      const model = provider({ content: [text] }, version);
      await aiSdk(model).complete({ messages });
      expect(model.asked[0]?.prompt).toHaveLength(1);
      const [message] = model.asked[0]?.prompt ?? [];
      return message?.role === "tool"
        ? message.content.map((part) => ("output" in part ? part.output : part))
        : message;
    };
    expect(await outputs("v3", result([text, image, file]), result([image], true), result([text]))).toEqual([
      {
        type: "content",
        value: [
          text,
          { type: "image-data", mediaType: "image/png", data: "aGk=" },
          { type: "file-data", mediaType: "application/pdf", data: "aGk=", filename: "a.pdf" },
        ],
      },
      { type: "error-text", value: expect.stringContaining("image/png") },
      { type: "text", value: "seen" },
    ]);
    expect(await outputs("v2", result([text, image]))).toEqual([
      { type: "content", value: [text, { type: "media", mediaType: "image/png", data: "aGk=" }] },
    ]);
  });

  test("stops reading a stream that ignores the signal", async () => {
    let cancelled = false;
    const stream = new ReadableStream<StreamPart>({
      start: (controller) => controller.enqueue({ type: "text-delta", id: "0", delta: "a" }),
      cancel: () => {
        cancelled = true;
      },
    });
    const model = { ...provider({}), doStream: async () => ({ stream }) };
    const controller = new AbortController();
    const reason = new Error("enough");
    const reading = async () => {
      for await (const _ of aiSdk(model).stream?.(request, { signal: controller.signal }) ?? [])
        controller.abort(reason);
    };
    await expect(reading()).rejects.toBe(reason);
    expect(cancelled).toBe(true);
  });

  test("yields no second delta of one part after an abort", async () => {
    const call: StreamPart = { type: "tool-call", toolCallId: "c1", toolName: "look", input: "{}" };
    const controller = new AbortController();
    const reason = new Error("enough");
    let pieces = 0;
    const reading = async () => {
      const stream = aiSdk(provider({ parts: [call, finish] })).stream?.(request, { signal: controller.signal });
      for await (const _ of stream ?? []) {
        pieces++;
        controller.abort(reason);
      }
    };
    await expect(reading()).rejects.toBe(reason);
    expect(pieces).toBe(1);
  });

  test("removes its listeners from a signal that many calls share", async () => {
    const { signal } = new AbortController();
    const model = aiSdk(provider({ content: [{ type: "text", text: "a" }], parts: [finish] }));
    await model.complete(request, { signal });
    await collect(model.stream?.(request, { signal }));
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
