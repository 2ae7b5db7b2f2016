import { describe, expect, test } from "vitest";
import { collect, openModelServer, wireFixture } from "../../../test/model-server.ts";
import type { ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { chatBody } from "./chat-body.ts";
import { openai } from "./openai.ts";

const tool = { name: "find_order", description: "Returns one order.", parameters: { type: "object", properties: {} } };
const user = (content: Message["content"]): Message => ({ role: "user", content: content ?? "" });
const image = { type: "image", mediaType: "image/png", data: "aGk=" } as const;
const bodyOf = (request: ModelRequest, baseURL?: string) => chatBody("gpt-x", request, baseURL, null);
const messagesOf = (...messages: Message[]) => bodyOf({ messages })["messages"];

test("a streaming request asks for usage, on the chat path, with the key and the headers", async () => {
  await using server = await openModelServer({ body: wireFixture("openai", "chat-text.sse.txt") });
  const model = openai("gpt-x", {
    apiKey: "the-key",
    baseURL: `${server.url}/v1`,
    headers: { "x-team": "blue" },
    organization: "org-1",
  });
  await collect(model.stream?.({ messages: [user("hi")], providerOptions: { seed: 7, user: "u" } }));
  expect(server.asked).toHaveLength(1);
  expect(server.asked[0]?.path).toBe("/v1/chat/completions");
  expect(server.asked[0]?.headers).toMatchObject({
    authorization: "Bearer the-key",
    "x-team": "blue",
    "openai-organization": "org-1",
  });
  expect(server.asked[0]?.body).toEqual({
    model: "gpt-x",
    messages: [{ role: "user", content: "hi" }],
    stream: true,
    stream_options: { include_usage: true },
    seed: 7,
    user: "u",
  });
});

test.for(["chat", "responses"] as const)(
  "a system message between others stays in its place on the %s API",
  async (api) => {
    await using server = await openModelServer({ body: wireFixture("openai", `${api}-text.json`) });
    const system = (content: string): Message => ({ role: "system", content });
    const messages = [
      system("Be brief."),
      user("one"),
      { ...user("1"), role: "assistant" },
      system("Now."),
      user("two"),
    ];
    await openai("gpt-x", { apiKey: "k", baseURL: `${server.url}/v1`, api }).complete({
      messages: messages as Message[],
    });
    const body = server.asked[0]?.body ?? {};
    const sent = (body["messages"] ?? body["input"]) as { role: string; content: string }[];
    expect(sent.map(({ role, content }) => [role, content])).toEqual([
      ["system", "Be brief."],
      ["user", "one"],
      ["assistant", "1"],
      ["system", "Now."],
      ["user", "two"],
    ]);
    expect(body).not.toHaveProperty("instructions");
  },
);

describe("a chat request", () => {
  test("has every parameter, and providerOptions override them", async () => {
    await using server = await openModelServer({ body: wireFixture("openai", "chat-text.json") });
    const request: ModelRequest = {
      messages: [{ role: "system", content: "Be brief." }, user("hi")],
      tools: [tool],
      toolChoice: { name: "find_order" },
      thinkingLevel: "high",
      temperature: 0.5,
      maxOutputTokens: 100,
      stop: ["END"],
      providerOptions: { temperature: 0.9 },
    };
    await openai("gpt-x", { apiKey: "k", baseURL: server.url }).complete(request);
    expect(server.asked[0]?.body).toEqual({
      model: "gpt-x",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi" },
      ],
      tools: [{ type: "function", function: tool }],
      tool_choice: { type: "function", function: { name: "find_order" } },
      reasoning_effort: "high",
      temperature: 0.9,
      max_tokens: 100,
      stop: ["END"],
    });
  });

  test("uses OpenAI's new name of the token limit for OpenAI only", () => {
    const limited: ModelRequest = { messages: [], maxOutputTokens: 5 };
    expect(bodyOf(limited)).toHaveProperty("max_completion_tokens", 5);
    expect(bodyOf(limited, "https://api.openai.com/v1")).toHaveProperty("max_completion_tokens", 5);
    expect(bodyOf(limited, "https://openai.com.example.org/v1")).toHaveProperty("max_tokens", 5);
  });

  test.for(["auto", "none", "required"] as const)("passes the tool choice %s, but not without tools", (toolChoice) => {
    expect(bodyOf({ messages: [], tools: [tool], toolChoice })["tool_choice"]).toBe(toolChoice);
    expect(bodyOf({ messages: [], toolChoice })).not.toHaveProperty("tool_choice");
  });

  test("sends no reasoning effort if the level is off", () => {
    expect(bodyOf({ messages: [], thinkingLevel: "off" })).not.toHaveProperty("reasoning_effort");
  });

  test("includes images, documents and texts, with notes for files that it cannot send", () => {
    const content = [
      { type: "text", text: "See:" },
      image,
      { type: "file", mediaType: "application/pdf", data: "cGRm", name: "a.pdf" },
      { type: "file", mediaType: "text/plain", data: Buffer.from("Grüße").toString("base64"), name: "b.txt" },
      { type: "file", mediaType: "application/zip", data: "eg==", name: "c.zip" },
    ] as const;
    expect(messagesOf(user(content))).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "See:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,cGRm" } },
          { type: "text", text: "b.txt:\nGrüße" },
          { type: "text", text: "[file c.zip of type application/zip, which cannot be shown to this model]" },
        ],
      },
    ]);
  });

  test("sends the images of tool results after the last result of the round", () => {
    const calls = ["a", "b"].map((id) => ({ id, name: "look", arguments: "{}" }));
    const result = (toolCallId: string, content: Message["content"]): Message => ({
      role: "tool",
      name: "look",
      toolCallId,
      content: content ?? "",
    });
    const sent = messagesOf(
      { role: "assistant", content: null, toolCalls: calls },
      result("a", [{ type: "text", text: "seen" }, image]),
      result("b", "nothing"),
      user("and?"),
    ) as { role: string; content: unknown }[];
    expect(sent.map((message) => message.role)).toEqual(["assistant", "tool", "tool", "user", "user"]);
    expect(sent[1]?.content).toBe("seen\n[image 1, shown below]");
    expect(sent[3]?.content).toEqual([
      { type: "text", text: "Shown by tool call a:" },
      { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
    ]);
  });

  test("sends answers of another provider as text, without thinking and provider data", () => {
    const foreign: Message = {
      role: "assistant",
      content: [
        { type: "thinking", text: "secret", signature: "s" },
        { type: "text", text: "said" },
      ],
      provider: "anthropic",
      providerData: [{ type: "thinking" }],
    };
    expect(messagesOf(foreign)).toEqual([{ role: "assistant", content: "said" }]);
  });
});
