import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collect } from "../../../test/model-server.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { anthropic } from "../anthropic/anthropic.ts";
import { openai } from "../openai/openai.ts";

// A mock server of another project for these APIs: it checks our requests independently of our own expectations.
const mock = new LLMock({ host: "127.0.0.1", port: 0 });
const weather = {
  name: "get_weather",
  description: "Returns the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const question: ModelRequest = {
  messages: [
    { role: "system", content: "You know the weather." },
    { role: "user", content: "How is the weather in Köln?" },
  ],
  tools: [weather],
};

beforeAll(async () => {
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "It rains in Köln 🌧." });
  mock.on(
    { userMessage: "weather", hasToolResult: false },
    {
      toolCalls: [
        { name: "get_weather", arguments: '{"city":"Köln"}' },
        { name: "get_weather", arguments: '{"city":"Bonn"}' },
      ],
    },
  );
  mock.on({ userMessage: "hello" }, { content: "Hello, how can I help you today?" });
  mock.on({ userMessage: "fail" }, { error: { message: "Slow down.", type: "rate_limit_error" }, status: 429 });
  await mock.start();
});
afterAll(() => mock.stop());

const models: Record<string, () => Model> = {
  "chat completions": () => openai("gpt-4o", { apiKey: "k", baseURL: `${mock.url}/v1` }),
  responses: () => openai("gpt-4o", { apiKey: "k", baseURL: `${mock.url}/v1`, api: "responses" }),
  messages: () => anthropic("claude-haiku-4-5", { apiKey: "k", baseURL: mock.url }),
};

const results = (calls: readonly { id: string; name: string }[]): Message[] =>
  calls.map(({ id, name }) => ({ role: "tool", toolCallId: id, name, content: "rain" }));

describe.for(Object.entries(models))("%s", ([, make]) => {
  const hello: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
  const answer = "Hello, how can I help you today?";

  test("answers with a text, whole and streamed", async () => {
    expect(await make().complete(hello)).toMatchObject({ content: answer, stopReason: "stop" });
    const { deltas, reply } = await collect(make().stream?.(hello));
    expect(reply).toMatchObject({ content: answer, stopReason: "stop" });
    const texts = deltas.flatMap((delta) => (delta.type === "text-delta" ? [delta.text] : []));
    expect(texts.join("")).toBe(answer);
    expect(deltas.filter((delta) => delta.type === "finish")).toHaveLength(1);
  });

  test("calls two tools and answers with their results", async () => {
    const first = await make().complete(question);
    expect(first).toMatchObject({ content: null, stopReason: "tool_calls" });
    expect(first.toolCalls?.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual([
      ["get_weather", { city: "Köln" }],
      ["get_weather", { city: "Bonn" }],
    ]);
    const messages = [...question.messages, first, ...results(first.toolCalls ?? [])];
    expect(await make().complete({ ...question, messages })).toMatchObject({ content: "It rains in Köln 🌧." });
  });

  test("calls two tools and answers with their results in streams as well", async () => {
    const { deltas, reply } = await collect(make().stream?.(question));
    expect(reply).toMatchObject({ stopReason: "tool_calls" });
    const calls = reply?.toolCalls ?? [];
    expect(calls).toHaveLength(2);
    calls.forEach((call, index) => {
      const own = deltas.flatMap((delta) => (delta.type === "tool-call-delta" && delta.index === index ? [delta] : []));
      expect(own[0]).toMatchObject({ id: call.id, name: call.name });
      expect(own.map((delta) => delta.arguments ?? "").join("")).toBe(call.arguments);
    });
    const messages = [...question.messages, ...(reply === undefined ? [] : [reply]), ...results(calls)];
    const second = await collect(make().stream?.({ ...question, messages }));
    expect(second.reply).toMatchObject({ content: "It rains in Köln 🌧.", stopReason: "stop" });
  });

  test("fails with the error of the server", async () => {
    const asking = make().complete({ messages: [{ role: "user", content: "fail" }] });
    await expect(asking).rejects.toMatchObject({ kind: "rate_limit", status: 429 });
  });
});
