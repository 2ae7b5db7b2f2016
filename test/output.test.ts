import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../src/agent/agent.ts";
import type { Model } from "../src/agent/model/model.ts";
import { aiSdk } from "../src/models/ai-sdk/index.ts";
import { anthropic } from "../src/models/anthropic/index.ts";
import { fieldsOf, listOf } from "../src/models/wire/json-reader.ts";
import { openai } from "../src/models/openai/index.ts";
import { type Asked, openModelServer, wireFixture } from "./model-server.ts";
import { shortly } from "./sample-run.ts";

const Weather = z.object({ city: z.string(), degrees: z.number().min(-90) });
const shape = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "number", minimum: -90 } },
  required: ["city", "degrees"],
  additionalProperties: false,
};
/** The same schema for a provider that supports no limits. */
const told = {
  ...shape,
  properties: { city: { type: "string" }, degrees: { type: "number", description: "minimum: -90" } },
};

interface Way {
  readonly folder: "openai" | "anthropic";
  readonly fixture: string;
  readonly model: (url: string) => Model;
  /** The schema in the request body, and the expected schema. */
  readonly said: (body: Asked["body"]) => unknown;
  readonly expected: unknown;
}

const ways: Readonly<Record<string, Way>> = {
  "the Chat Completions API": {
    folder: "openai",
    fixture: "chat-output",
    model: (url) => openai("gpt-4o-mini", { apiKey: "k", baseURL: `${url}/v1` }),
    said: (body) => body["response_format"],
    expected: { type: "json_schema", json_schema: { name: "answer", schema: shape, strict: true } },
  },
  "the Responses API": {
    folder: "openai",
    fixture: "responses-output",
    model: (url) => openai("gpt-4o-mini", { apiKey: "k", baseURL: `${url}/v1`, api: "responses" }),
    said: (body) => fieldsOf(body["text"])["format"],
    expected: { type: "json_schema", name: "answer", schema: shape, strict: true },
  },
  "the Messages API": {
    folder: "anthropic",
    fixture: "output",
    model: (url) => anthropic("claude-haiku-4-5", { apiKey: "k", baseURL: url }),
    said: (body) => fieldsOf(body["output_config"])["format"],
    expected: { type: "json_schema", schema: told },
  },
  "the Messages API, of a model from before it could": {
    folder: "anthropic",
    fixture: "output-tool",
    model: (url) => anthropic("claude-3-5-haiku-latest", { apiKey: "k", baseURL: url, cache: false }),
    said: (body) => [body["tool_choice"], listOf(body["tools"]).map((tool) => fieldsOf(tool)["input_schema"])],
    expected: [{ type: "tool", name: "give_answer" }, [shape]],
  },
  "a provider of the AI SDK": {
    folder: "openai",
    fixture: "chat-output",
    model: (url) => aiSdk(compatibleAt(url, { supportsStructuredOutputs: true })),
    said: (body) => body["response_format"],
    expected: { type: "json_schema", json_schema: { name: "answer", schema: told, strict: true } },
  },
};

function compatibleAt(url: string, options: { readonly supportsStructuredOutputs?: boolean } = {}) {
  const server = { name: "local", apiKey: "k", baseURL: `${url}/v1`, includeUsage: true };
  return createOpenAICompatible({ ...server, ...options }).chatModel("gpt-4o-mini");
}

describe.for(Object.entries(ways))("by %s", ([, { folder, fixture, model, said, expected }]) => {
  const wrong = { body: wireFixture(folder, `${fixture}-wrong.sse.txt`) };
  const right = { body: wireFixture(folder, `${fixture}.sse.txt`) };

  test("a run ends with a checked value, after the model was told about an invalid one", async () => {
    await using server = await openModelServer(wrong, right);
    const agent = createAgent({ prompt: "You know the weather.", model: model(server.url), builtInTools: false });
    const answer = await agent.run("How is the weather in Köln?", { output: Weather });
    expect(answer.output).toEqual({ city: "Köln", degrees: 21 });
    expect(server.asked.map(({ body }) => said(body))).toEqual([expected, expected]);
    expect(JSON.stringify(server.asked[1]?.body)).toContain("answer.degrees is refused: Invalid input");
  });

  test("a run fails if no value fits, and keeps its messages", async () => {
    await using server = await openModelServer(wrong);
    const agent = createAgent({ prompt: "You know the weather.", model: model(server.url), builtInTools: false });
    const run = agent.run("How is the weather in Köln?", { output: Weather, outputRetries: 1 });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    expect(server.asked).toHaveLength(2);
    expect(shortly(run.transcript).filter((line) => line.startsWith("assistant"))).toHaveLength(2);
  });
});

test("a provider of the AI SDK without support for schemas is asked through a tool", async () => {
  await using server = await openModelServer({ body: wireFixture("openai", "chat-output.sse.txt") });
  const agent = createAgent({ prompt: "", model: aiSdk(compatibleAt(server.url)), builtInTools: false });
  const { output } = await agent.run("How is the weather in Köln?", { output: Weather });
  expect(output).toEqual({ city: "Köln", degrees: 21 });
  expect(server.asked[0]?.body).toMatchObject({ tool_choice: { function: { name: "give_answer" } } });
  expect(server.asked[0]?.body).not.toHaveProperty("response_format");
});

test("a schema that a provider cannot enforce is requested in another way", () => {
  const [gpt, claude] = [openai("gpt-5-mini", { apiKey: "k" }), anthropic("claude-opus-5", { apiKey: "k" })];
  const tags = { type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "string" } };
  const open = { type: "object", properties: { tags }, additionalProperties: false };
  expect([gpt, claude].map((model) => model.takesOutput?.(shape))).toEqual([true, true]);
  expect([gpt, claude].map((model) => model.takesOutput?.(open))).toEqual([true, false]);
  expect(openai("gpt-4-turbo", { apiKey: "k" }).takesOutput?.(shape)).toBe(false);
  expect(openai("deepseek-chat", { apiKey: "k", takesOutput: false }).takesOutput?.(shape)).toBe(false);
  expect(anthropic("claude-opus-4-1", { apiKey: "k" }).takesOutput?.(shape)).toBe(false);
});
