import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { collect, openModelServer, wireFixture } from "../../../test/model-server.ts";
import type { ModelRequest } from "../../agent/model/model.ts";
import { anthropic } from "../anthropic/anthropic.ts";
import { openai } from "../openai/openai.ts";
import type { WireModelOptions } from "./wire-model.ts";

const request: ModelRequest = { messages: [{ role: "user", content: "hello" }] };
const wires = {
  "openai chat": {
    make: (baseURL: string, options: WireModelOptions = {}) => openai("gpt-4o", { apiKey: "k", baseURL, ...options }),
    beginning: wireFixture("openai", "chat-early-end.sse.txt"),
    answer: wireFixture("openai", "chat-text.json"),
  },
  "openai responses": {
    make: (baseURL: string, options: WireModelOptions = {}) =>
      openai("gpt-4o", { apiKey: "k", baseURL, api: "responses", ...options }),
    beginning: wireFixture("openai", "responses-early-end.sse.txt"),
    answer: wireFixture("openai", "responses-text.json"),
  },
  anthropic: {
    make: (baseURL: string, options: WireModelOptions = {}) =>
      anthropic("claude-haiku-4-5", { apiKey: "k", baseURL, ...options }),
    beginning: wireFixture("anthropic", "early-end.sse.txt"),
    answer: wireFixture("anthropic", "text.json"),
  },
} as const;

describe.for(Object.entries(wires))("a model over HTTP with the API of %s", ([, { make, beginning, answer }]) => {
  test("rejects with the reason of an abort while it waits, and closes the connection", async () => {
    await using server = await openModelServer({ after: "hang" });
    const controller = new AbortController();
    const waiting = make(server.url).complete(request, { signal: controller.signal });
    const refused = expect(waiting).rejects.toBe("enough");
    await server.reached;
    controller.abort("enough");
    await refused;
    await server.abandoned;
  });

  test("rejects with the reason of an abort in the middle of a stream, and closes the connection", async () => {
    await using server = await openModelServer({ body: beginning, after: "hang" });
    const controller = new AbortController();
    const reason = new Error("enough");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const delta of make(server.url).stream?.(request, { signal: controller.signal }) ?? []) {
        seen.push(delta.type);
        // The server sends nothing more, so the stream is waiting at the abort.
        setImmediate(() => controller.abort(reason));
      }
    })();
    await expect(reading).rejects.toBe(reason);
    expect(seen).not.toContain("finish");
    expect(seen.length).toBeGreaterThan(0);
    await server.abandoned;
  });

  test("closes the connection when its reader stops reading", async () => {
    await using server = await openModelServer({ body: beginning, after: "hang" });
    for await (const delta of make(server.url).stream?.(request) ?? []) {
      expect(delta.type).toMatch(/-delta$/);
      break;
    }
    await server.abandoned;
  });

  test("sends nothing when it is aborted before it starts", async () => {
    await using server = await openModelServer({ body: answer });
    const model = make(server.url);
    const signal = AbortSignal.abort("no");
    await expect(model.complete(request, { signal })).rejects.toBe("no");
    await expect(collect(model.stream?.(request, { signal }))).rejects.toBe("no");
    expect(server.asked).toEqual([]);
  });

  test("times out if a provider sends nothing, before and within an answer", async () => {
    await using silent = await openModelServer({ after: "hang" });
    const failed = { code: "MODEL_FAILED", kind: "timeout", retryable: true };
    await expect(make(silent.url, { timeoutMs: 50 }).complete(request)).rejects.toMatchObject(failed);
    await silent.abandoned;
    await using stalled = await openModelServer({ body: beginning, after: "hang" });
    await expect(collect(make(stalled.url, { timeoutMs: 50 }).stream?.(request))).rejects.toMatchObject(failed);
    await stalled.abandoned;
  });

  test("never changes the request", async () => {
    await using server = await openModelServer({ body: answer });
    const frozen: ModelRequest = Object.freeze({
      messages: Object.freeze([Object.freeze({ role: "user", content: "hello" } as const)]),
      tools: Object.freeze([Object.freeze({ name: "a", description: "b", parameters: Object.freeze({}) })]),
      providerOptions: Object.freeze({ extra: 1 }),
    });
    expect((await make(server.url).complete(frozen)).content).toBe("Grüße aus Köln 🌍");
    expect(server.asked[0]?.body["extra"]).toBe(1);
  });

  test("refuses provider options that are not an object", async () => {
    await using server = await openModelServer({ body: answer });
    const asking = make(server.url).complete({ ...request, providerOptions: ["a"] });
    await expect(asking).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  test("computes costs with the given prices", async () => {
    await using server = await openModelServer({ body: answer });
    const reply = await make(server.url, { prices: { input: 1e6, output: 0 } }).complete(request);
    expect(reply.cost).toBe(reply.usage?.inputTokens);
  });

  test("has the given context window, and refuses invalid numbers", () => {
    expect(make("http://127.0.0.1:1", { contextWindow: 1000 }).contextWindow).toBe(1000);
    for (const options of [{ timeoutMs: 0 }, { contextWindow: 1.5 }, { prices: { input: -1, output: 1 } }])
      expect(() => make("http://127.0.0.1:1", options)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
});

describe("a caller's own client", () => {
  test("of OpenAI is used without our key, and does not retry either", async () => {
    await using server = await openModelServer({ status: 500 }, { body: wireFixture("openai", "chat-text.json") });
    const client = new OpenAI({ apiKey: "theirs", baseURL: server.url, maxRetries: 5 });
    const model = openai("gpt-4o", { client });
    await expect(model.complete(request)).rejects.toMatchObject({ kind: "server" });
    expect((await model.complete(request)).stopReason).toBe("stop");
    expect(server.asked).toHaveLength(2);
    expect(server.asked[0]?.headers.authorization).toBe("Bearer theirs");
  });

  test("of Anthropic is used without our key, and does not retry either", async () => {
    await using server = await openModelServer({ status: 500 }, { body: wireFixture("anthropic", "text.json") });
    const client = new Anthropic({ apiKey: "theirs", baseURL: server.url, maxRetries: 5 });
    const model = anthropic("claude-haiku-4-5", { client });
    await expect(model.complete(request)).rejects.toMatchObject({ kind: "server" });
    expect((await model.complete(request)).stopReason).toBe("stop");
    expect(server.asked).toHaveLength(2);
    expect(server.asked[0]?.headers["x-api-key"]).toBe("theirs");
  });

  test("that times out by itself is reported as a timeout", async () => {
    await using server = await openModelServer({ after: "hang" });
    const client = new OpenAI({ apiKey: "theirs", baseURL: server.url, timeout: 50 });
    await expect(openai("gpt-4o", { client }).complete(request)).rejects.toMatchObject({ kind: "timeout" });
  });
});

test("yields no further delta of an event after an abort", async () => {
  const call = (index: number) => ({
    index,
    id: `c${index}`,
    type: "function",
    function: { name: "look", arguments: "{}" },
  });
  const chunk = {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "gpt-4o",
    choices: [{ index: 0, delta: { role: "assistant", tool_calls: [call(0), call(1)] }, finish_reason: null }],
  };
  await using server = await openModelServer({
    headers: { "content-type": "text/event-stream" },
    body: Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`),
    after: "hang",
  });
  const controller = new AbortController();
  const pieces: unknown[] = [];
  const reading = (async () => {
    const model = wires["openai chat"].make(server.url);
    for await (const delta of model.stream?.(request, { signal: controller.signal }) ?? []) {
      pieces.push(delta);
      controller.abort("enough");
    }
  })();
  await expect(reading).rejects.toBe("enough");
  expect(pieces).toHaveLength(1);
});
