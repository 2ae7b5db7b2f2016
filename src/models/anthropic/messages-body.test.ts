import { describe, expect, test } from "vitest";
import { openModelServer, wireFixture } from "../../../test/model-server.ts";
import type { ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import { anthropic } from "./anthropic.ts";
import { messagesBody } from "./messages-body.ts";

const tool = { name: "find_order", description: "Returns one order.", parameters: { type: "object" } };
const user = (content: Message["content"]): Message => ({ role: "user", content: content ?? "" });
const bodyOf = (request: ModelRequest, id = "claude-haiku-4-5") =>
  messagesBody(id, request, { cache: null, thinking: undefined });
const messagesOf = (...messages: Message[]) => bodyOf({ messages })["messages"];
const image = { type: "image", mediaType: "image/png", data: "aGk=" } as const;
const cached = { cache_control: { type: "ephemeral" } };

test("a request has its first system messages in their own field, later ones in their place, and cache breakpoints", async () => {
  await using server = await openModelServer({ body: wireFixture("anthropic", "text.json") });
  const model = anthropic("claude-haiku-4-5", {
    apiKey: "the-key",
    baseURL: server.url,
    headers: { "x-team": "blue" },
  });
  await model.complete({
    messages: [
      { role: "system", content: "Be brief." },
      user("hi"),
      { role: "assistant", content: "Yes?" },
      { role: "system", content: "Be kind." },
      user("who are you?"),
    ],
    tools: [{ ...tool, name: "first" }, tool],
    toolChoice: "auto",
    temperature: 0.5,
    maxOutputTokens: 100,
    stop: ["END"],
    providerOptions: { metadata: { user_id: "u" }, max_tokens: 50 },
  });
  expect(server.asked).toHaveLength(1);
  expect(server.asked[0]?.path).toBe("/v1/messages");
  expect(server.asked[0]?.headers).toMatchObject({ "x-api-key": "the-key", "x-team": "blue" });
  expect(server.asked[0]?.headers).not.toHaveProperty("authorization");
  expect(server.asked[0]?.body).toEqual({
    model: "claude-haiku-4-5",
    max_tokens: 50,
    system: [{ type: "text", text: "Be brief.", ...cached }],
    messages: [
      { role: "user", content: [{ type: "text", text: "hi", ...cached }] },
      { role: "assistant", content: [{ type: "text", text: "Yes?" }] },
      {
        role: "user",
        content: [
          { type: "text", text: "Message from the application, not from the user:\n\nBe kind." },
          { type: "text", text: "who are you?", ...cached },
        ],
      },
    ],
    tools: [
      { name: "first", description: tool.description, input_schema: tool.parameters },
      { name: "find_order", description: tool.description, input_schema: tool.parameters, ...cached },
    ],
    tool_choice: { type: "auto" },
    temperature: 0.5,
    stop_sequences: ["END"],
    metadata: { user_id: "u" },
  });
});

test("no cache breakpoints are set if caching is off", async () => {
  await using server = await openModelServer({ body: wireFixture("anthropic", "text.json") });
  const model = anthropic("claude-haiku-4-5", { apiKey: "k", baseURL: server.url, cache: false });
  await model.complete({ messages: [{ role: "system", content: "s" }, user("hi")], tools: [tool] });
  expect(JSON.stringify(server.asked[0]?.body)).not.toContain("cache_control");
});

describe("the messages of a request", () => {
  test("put tool results and the following user message into one message, results first", () => {
    const calls = ["a", "b"].map((id) => ({ id, name: "look", arguments: '{"at":1}' }));
    const sent = messagesOf(
      user("look"),
      { role: "assistant", content: null, toolCalls: calls },
      { role: "tool", toolCallId: "a", name: "look", content: [{ type: "text", text: "seen" }, image] },
      { role: "tool", toolCallId: "b", name: "look", content: "no such thing", isError: true },
      user("and?"),
    );
    expect(sent).toEqual([
      { role: "user", content: [{ type: "text", text: "look" }] },
      {
        role: "assistant",
        content: calls.map(({ id }) => ({ type: "tool_use", id, name: "look", input: { at: 1 } })),
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "a",
            content: [
              { type: "text", text: "seen" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
            ],
          },
          {
            type: "tool_result",
            tool_use_id: "b",
            content: [{ type: "text", text: "no such thing" }],
            is_error: true,
          },
          { type: "text", text: "and?" },
        ],
      },
    ]);
  });

  test("include images, documents and texts, with notes for files that cannot be sent", () => {
    const sent = messagesOf(
      user([
        image,
        { type: "file", mediaType: "application/pdf", data: "cGRm", name: "a.pdf" },
        { type: "file", mediaType: "text/csv", data: Buffer.from("a,ü").toString("base64") },
        { type: "file", mediaType: "application/zip", data: "eg==" },
      ]),
    );
    expect(sent).toEqual([
      {
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "cGRm" },
            title: "a.pdf",
          },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "a,ü" } },
          { type: "text", text: "[file of type application/zip, which cannot be shown to this model]" },
        ],
      },
    ]);
  });

  test("leave out blank texts and messages without content, which the provider refuses", () => {
    expect(
      messagesOf(user("a"), { role: "assistant", content: " \n" }, user([{ type: "text", text: "" }]), user("b")),
    ).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ]);
  });

  test("convert call ids of other providers to valid, distinct ids", () => {
    const ids = ["fn.look:0", "fn:look.0", "plain-id_1"];
    const sent = messagesOf(
      { role: "assistant", content: null, toolCalls: ids.map((id) => ({ id, name: "look", arguments: "" })) },
      ...ids.map((id): Message => ({ role: "tool", toolCallId: id, name: "look", content: "ok" })),
    ) as { content: Record<string, unknown>[] }[];
    const used = sent[0]?.content.map((block) => block["id"]);
    expect(sent[1]?.content.map((block) => block["tool_use_id"])).toEqual(used);
    expect(new Set(used).size).toBe(3);
    expect(used?.[2]).toBe("plain-id_1");
    for (const id of used ?? []) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
  });

  test("return arguments that were not JSON to the model as it wrote them", () => {
    const sent = messagesOf({
      role: "assistant",
      content: null,
      toolCalls: [{ id: "a", name: "look", arguments: '{"at":' }],
    });
    expect(sent).toMatchObject([{ content: [{ input: { unreadable_arguments: '{"at":' } }] }]);
  });

  test("omit thinking of other providers", () => {
    const thought: Message = {
      role: "assistant",
      content: [
        { type: "thinking", text: "hm", signature: "s" },
        { type: "text", text: "said" },
      ],
      provider: "openai",
      providerData: [{ type: "thinking", thinking: "hm", signature: "s" }],
    };
    expect(messagesOf(thought)).toEqual([{ role: "assistant", content: [{ type: "text", text: "said" }] }]);
  });
});

describe("tools", () => {
  test.for([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [{ name: "find_order" }, { type: "tool", name: "find_order" }],
  ] as const)("are chosen with %j as %j", ([toolChoice, sent]) => {
    expect(bodyOf({ messages: [], tools: [tool], toolChoice })["tool_choice"]).toEqual(sent);
  });

  test("that were used earlier are declared and forbidden if a request has none", () => {
    const messages: Message[] = [
      { role: "assistant", content: null, toolCalls: [{ id: "a", name: "look", arguments: "{}" }] },
      { role: "tool", toolCallId: "a", name: "look", content: "ok" },
    ];
    expect(bodyOf({ messages })).toMatchObject({
      tools: [{ name: "look", input_schema: { type: "object" } }],
      tool_choice: { type: "none" },
    });
    expect(bodyOf({ messages: [user("a")] })).not.toHaveProperty("tools");
  });
});

describe("a thinking level", () => {
  const asked = (request: Partial<ModelRequest>, id?: string) => bodyOf({ messages: [user("a")], ...request }, id);

  test("is a budget within the limit of the answer, and removes the temperature", () => {
    const body = asked({ thinkingLevel: "medium", temperature: 0.5 });
    expect(body["thinking"]).toEqual({ type: "enabled", budget_tokens: 10_240 });
    expect(body).not.toHaveProperty("temperature");
    expect(asked({ thinkingLevel: "high", maxOutputTokens: 4000 })["thinking"]).toMatchObject({ budget_tokens: 3000 });
    expect(asked({ thinkingLevel: "high", maxOutputTokens: 1200 })).not.toHaveProperty("thinking");
  });

  test.for(["claude-opus-4-6", "claude-sonnet-5", "claude-opus-5-5", "claude-fable-5"])(
    "is an effort for %s, which accepts no budget",
    (id) => {
      expect(asked({ thinkingLevel: "high" }, id)).toMatchObject({
        thinking: { type: "adaptive" },
        output_config: { effort: "high" },
      });
    },
  );

  test.for(["claude-sonnet-4-20250514", "claude-opus-4-1", "claude-3-7-sonnet-latest", "some-other-model"])(
    "is a budget for %s",
    (id) => {
      expect(asked({ thinkingLevel: "low" }, id)["thinking"]).toEqual({ type: "enabled", budget_tokens: 4096 });
    },
  );

  test("of off disables thinking for models that think by default, and keeps the temperature", () => {
    expect(asked({ thinkingLevel: "off", temperature: 1 }, "claude-sonnet-5")).toMatchObject({
      thinking: { type: "disabled" },
      temperature: 1,
    });
    expect(asked({ thinkingLevel: "off" })).not.toHaveProperty("thinking");
    expect(asked({}, "claude-sonnet-5")).not.toHaveProperty("thinking");
  });

  test("is ignored for a forced tool, and refused if it is unknown", () => {
    const forced = { tools: [tool], toolChoice: "required", thinkingLevel: "high" } as const;
    expect(asked(forced)).not.toHaveProperty("thinking");
    expect(() => asked({ thinkingLevel: "galactic" })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });

  test("can be sent in the other way than the id suggests", async () => {
    await using server = await openModelServer({ body: wireFixture("anthropic", "text.json") });
    const model = anthropic("claude-next", { apiKey: "k", baseURL: server.url, thinking: "budget" });
    await model.complete({ messages: [user("a")], thinkingLevel: "minimal" });
    expect(server.asked[0]?.body["thinking"]).toEqual({ type: "enabled", budget_tokens: 1024 });
  });
});
