import { expect, test } from "vitest";
import { startEmulator } from "../../bench/cache/emulator-server.ts";
import type { Model, ModelReply } from "../../src/agent/model/model.ts";
import { anthropic } from "../../src/models/anthropic/anthropic.ts";
import { openai } from "../../src/models/openai/openai.ts";
import type { Message } from "../../src/session/message.ts";
import { collect } from "../model-server.ts";

const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" } }];
const key = { apiKey: "k" };
const models: Record<string, (url: string) => Model> = {
  "the Messages API": (baseURL) => anthropic("claude-sonnet-4-5", { ...key, baseURL }),
  "the Chat Completions API": (url) => openai("gpt-5.2", { ...key, baseURL: `${url}/v1` }),
  "the Responses API": (url) => openai("gpt-5.2", { ...key, baseURL: `${url}/v1`, api: "responses" }),
};

test.for(Object.entries(models))(
  "the emulator's server answers %s with calls, texts and usage, whole and as streams",
  async ([api, modelAt]) => {
    const provider = api === "the Messages API" ? "anthropic" : "openai";
    await using server = await startEmulator({
      provider,
      model: provider === "openai" ? "gpt-5.2" : "claude-sonnet-4-5",
    });
    const model = modelAt(server.url);
    const messages: Message[] = [
      { role: "system", content: "Every rule is written down here. ".repeat(200) },
      { role: "user", content: "Look." },
    ];
    const streamed = async (): Promise<ModelReply> =>
      (await collect(model.stream?.({ messages, tools }))).reply as ModelReply;
    const call = await streamed();
    expect(call).toMatchObject({ toolCalls: [{ name: "look", arguments: "{}" }], stopReason: "tool_calls" });
    expect(call.usage?.cacheReadTokens ?? 0).toBe(0);
    messages.push(call, { role: "tool", toolCallId: call.toolCalls?.[0]?.id ?? "", name: "look", content: "seen" });
    const text = await streamed();
    expect(text).toMatchObject({ content: "Done.", stopReason: "stop" });
    expect(text.usage?.cacheReadTokens).toBeGreaterThan(1024);
    const whole = await model.complete({ messages, tools });
    expect(whole).toMatchObject({ content: "Done.", usage: { inputTokens: text.usage?.inputTokens } });
    await model.complete({ messages: [{ role: "user", content: "A title?" }] });
    expect(server.sums).toMatchObject({ requests: 3, largestTokens: text.usage?.inputTokens });
    expect(server.others.requests).toBe(1);
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(404);
  },
);
