import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { collect, openModelServer, type Replay, wireFixture } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { type AiSdkModel, type AiSdkOptions, aiSdk } from "./index.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const body = (name: string): Replay => ({ body: wireFixture("openai", name) });

function modelAt(url: string, options: AiSdkOptions = {}): Model {
  const provider = createOpenAICompatible({ name: "local", apiKey: "k", baseURL: `${url}/v1`, includeUsage: true });
  return aiSdk(provider.chatModel("m-1"), options);
}

async function completed(replay: Replay, asked: ModelRequest = request, options?: AiSdkOptions) {
  await using server = await openModelServer(replay);
  const reply = await modelAt(server.url, options).complete(asked);
  return { reply, body: server.asked[0]?.body ?? {} };
}

async function streamed(replay: Replay) {
  await using server = await openModelServer(replay);
  return await collect(modelAt(server.url).stream?.(request));
}

const usage = { inputTokens: 1200, outputTokens: 40, totalTokens: 1240, cacheReadTokens: 1024, reasoningTokens: 16 };

describe("an AI SDK model over HTTP", () => {
  test("answers with text and usage, whole or streamed", async () => {
    const answer = {
      role: "assistant",
      content: "Grüße aus Köln 🌍",
      provider: "local.chat",
      model: "gpt-4o-mini-2024-07-18",
      usage,
      stopReason: "stop",
    };
    expect((await completed(body("chat-text.json"))).reply).toEqual(answer);
    expect(await streamed(body("chat-text.sse.txt"))).toEqual({
      deltas: [
        { type: "text-delta", text: "Grüße" },
        { type: "text-delta", text: " aus Köln" },
        { type: "text-delta", text: " 🌍" },
        { type: "finish", stopReason: "stop", usage, reply: answer },
      ],
      reply: answer,
    });
  });

  test("costs what its tokens cost", async () => {
    const prices = { input: 1, output: 2, cacheRead: 0.5 };
    const { reply } = await completed(body("chat-text.json"), request, { prices });
    expect(reply.cost).toBeCloseTo((176 * 1 + 1024 * 0.5 + 40 * 2) / 1e6, 12);
  });

  test("streams tool calls in deltas, also interleaved ones", async () => {
    const { deltas, reply } = await streamed(body("chat-tools.sse.txt"));
    const joined = new Map<number, string>();
    for (const delta of deltas) {
      if (delta.type !== "tool-call-delta") continue;
      joined.set(delta.index, (joined.get(delta.index) ?? "") + (delta.arguments ?? ""));
    }
    expect(reply?.stopReason).toBe("tool_calls");
    expect(reply?.toolCalls?.map(({ id }) => id)).toEqual(["call_a", "call_b", "call_c"]);
    expect(reply?.toolCalls?.map((call) => call.arguments)).toEqual([...joined.values()]);
    for (const call of reply?.toolCalls?.slice(0, 2) ?? []) expect(JSON.parse(call.arguments)).toBeTypeOf("object");
  });

  test("keeps its thinking, and sends it back to the same provider only", async () => {
    const { deltas, reply } = await streamed(body("chat-thinking.sse.txt"));
    expect(deltas[0]).toMatchObject({ type: "thinking-delta" });
    expect(reply?.content).toMatchObject([{ type: "thinking" }, { type: "text", text: "Let me look." }]);
    const said = JSON.parse(JSON.stringify(reply)) as Message;
    const result: Message = { role: "tool", toolCallId: "call_t", name: "weather", content: "rain" };
    const bodies = await Promise.all(
      [said, { ...said, provider: "elsewhere" }, { ...said, toolCalls: [] }].map(async (message) => {
        const messages = [...request.messages, message as Message, result];
        return (await completed(body("chat-text.json"), { messages })).body.messages as Record<string, unknown>[];
      }),
    );
    expect(bodies[0]?.[1]).toMatchObject({
      role: "assistant",
      content: "Let me look.",
      tool_calls: [{ id: "call_t" }],
    });
    expect(bodies[0]?.[1]?.reasoning_content).toMatch(/wants weather\.$/);
    expect(bodies[1]?.[1]).toMatchObject({ content: "Let me look.", tool_calls: [{ id: "call_t" }] });
    expect(bodies[1]?.[1]).not.toHaveProperty("reasoning_content");
    expect(bodies[2]?.[1]).not.toHaveProperty("tool_calls");
  });

  test("sends a system message between others as a user message that says where it comes from", async () => {
    const messages: Message[] = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
      { role: "assistant", content: "Yes?" },
      { role: "system", content: "Be kind." },
      { role: "user", content: "who?" },
    ];
    const { body: sent } = await completed(body("chat-text.json"), { messages });
    expect(sent["messages"]).toEqual([
      ...messages.slice(0, 3),
      { role: "user", content: "Message from the application, not from the user:\n\nBe kind." },
      messages[4],
    ]);
  });

  test("passes on every parameter of a request", async () => {
    const parameters = { type: "object", properties: { number: { type: "string" } } };
    const asked: ModelRequest = {
      messages: [
        { role: "system", content: [{ type: "text", text: "Be brief." }] },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image", mediaType: "image/png", data: "aGk=" },
          ],
        },
        {
          role: "assistant",
          content: null,
          toolCalls: [
            { id: "c1", name: "find", arguments: '{"number":"1"}' },
            { id: "c2", name: "find", arguments: "" },
            { id: "c3", name: "find", arguments: '{"number' },
          ],
        },
        { role: "tool", toolCallId: "c1", name: "find", content: "here" },
        { role: "tool", toolCallId: "c2", name: "find", content: "no number", isError: true },
        { role: "tool", toolCallId: "c3", name: "find", content: "no JSON", isError: true },
        { role: "assistant", content: null },
      ],
      tools: [{ name: "find", description: "Finds.", parameters }],
      toolChoice: { name: "find" },
      thinkingLevel: "high",
      temperature: 0.5,
      maxOutputTokens: 100,
      stop: ["END"],
      providerOptions: { local: { user: "u", reasoningEffort: "low" } },
    };
    const thinking = (level: string) => ({ local: { reasoningEffort: level } });
    const { body: sent } = await completed(body("chat-text.json"), asked, { thinking });
    expect(sent).toMatchObject({
      model: "m-1",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
          ],
        },
        {
          role: "assistant",
          tool_calls: [
            { id: "c1", function: { name: "find", arguments: '{"number":"1"}' } },
            { id: "c2", function: { name: "find", arguments: "{}" } },
            { id: "c3", function: { name: "find", arguments: '{"malformed":"{\\"number"}' } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "here" },
        { role: "tool", tool_call_id: "c2", content: "no number" },
        { role: "tool", tool_call_id: "c3", content: "no JSON" },
      ],
      tools: [{ type: "function", function: { name: "find", description: "Finds.", parameters } }],
      tool_choice: { type: "function", function: { name: "find" } },
      temperature: 0.5,
      max_tokens: 100,
      stop: ["END"],
      user: "u",
      reasoning_effort: "low",
    });
    expect(sent.messages).toHaveLength(6);
    const { body: plain } = await completed(
      body("chat-text.json"),
      { ...request, thinkingLevel: "high" },
      { thinking },
    );
    expect(plain.reasoning_effort).toBe("high");
    expect(Object.keys(plain).sort()).toEqual(["messages", "model", "reasoning_effort"]);
  });

  test.for<[Replay, Record<string, unknown>]>([
    [
      { status: 401, body: '{"error":{"message":"Wrong key."}}' },
      { kind: "authentication", status: 401, retryable: false },
    ],
    [
      { status: 429, body: '{"error":{"message":"Slow."}}', headers: { "retry-after": "7" } },
      { kind: "rate_limit", retryAfterMs: 7000, retryable: true },
    ],
    [
      { status: 503, body: "busy" },
      { kind: "server", status: 503, retryable: true },
    ],
    [
      { status: 404, body: '{"error":{"message":"No model."}}' },
      { kind: "invalid_request", status: 404 },
    ],
    [
      { status: 400, body: '{"error":{"message":"Too long.","code":"context_length_exceeded"}}' },
      { kind: "context_overflow" },
    ],
    [{ body: '{"id":1}' }, { kind: "malformed", status: 200 }],
    [{ body: "{half" }, { kind: "malformed" }],
    [{ after: "break" }, { kind: "connection", retryable: true }],
  ])("fails with the error of its provider: %j", async ([replay, failure]) => {
    await using server = await openModelServer(replay);
    const model = modelAt(server.url);
    await expect(model.complete(request)).rejects.toMatchObject({
      code: "MODEL_FAILED",
      provider: "local.chat",
      ...failure,
    });
    expect(server.asked).toHaveLength(1);
  });

  test("fails with a connection error if no server listens", async () => {
    const server = await openModelServer({});
    await server[Symbol.asyncDispose]();
    await expect(modelAt(server.url).complete(request)).rejects.toMatchObject({ kind: "connection", retryable: true });
  });

  test.for<[Replay, Record<string, unknown>]>([
    [body("chat-early-end.sse.txt"), { kind: "connection", retryable: true }],
    [
      { ...body("chat-early-end.sse.txt"), after: "break" },
      { kind: "connection", retryable: true },
    ],
    [body("chat-error-event.sse.txt"), { kind: "server", retryable: true }],
    [body("chat-malformed.sse.txt"), { kind: "malformed" }],
    [{ status: 429, body: '{"error":{"message":"Slow."}}' }, { kind: "rate_limit" }],
  ])("fails with the error within a stream", async ([replay, failure]) => {
    await expect(streamed(replay)).rejects.toMatchObject({ code: "MODEL_FAILED", provider: "local.chat", ...failure });
  });

  test("closes the connection after an abort, and when its stream is not read to the end", async () => {
    const half = { ...body("chat-early-end.sse.txt"), after: "hang" } as const;
    await using server = await openModelServer(half);
    const controller = new AbortController();
    const reason = new Error("enough");
    const reading = async () => {
      const signal = controller.signal;
      for await (const delta of modelAt(server.url).stream?.(request, { signal }) ?? []) {
        if (delta.type === "text-delta" && delta.text === " answer") controller.abort(reason);
      }
    };
    await expect(reading()).rejects.toBe(reason);
    await server.abandoned;
    await using second = await openModelServer(half);
    for await (const _ of modelAt(second.url).stream?.(request) ?? []) break;
    await second.abandoned;
  });
});

describe("aiSdk", () => {
  test("refuses a value that is not a model, and an unsupported version", () => {
    const model = { provider: "p", modelId: "m", doGenerate: () => {}, doStream: () => {} };
    for (const wrong of ["openai/gpt-5", null, undefined, {}, { ...model, specificationVersion: "v1" }]) {
      expect(() => aiSdk(wrong as unknown as AiSdkModel)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    }
    expect(() => aiSdk({ ...model, specificationVersion: "v4" } as unknown as AiSdkModel)).toThrow(
      /"v4".*"v2" and "v3"/,
    );
  });

  test("refuses provider options that are not by provider", async () => {
    for (const providerOptions of ["fast", ["a"], { user: "u" }]) {
      const asking = modelAt("http://127.0.0.1:1").complete({ ...request, providerOptions });
      await expect(asking).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
  });

  test("has the given context window, and the model's own names", () => {
    expect(modelAt("http://127.0.0.1:1", { contextWindow: 7 })).toMatchObject({
      provider: "local.chat",
      id: "m-1",
      contextWindow: 7,
    });
    expect(modelAt("http://127.0.0.1:1")).not.toHaveProperty("contextWindow");
  });
});
