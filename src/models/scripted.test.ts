import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { assistant, usage, user } from "../../test/sample-log.ts";
import type { ModelDelta, ModelReply, ModelRequest } from "../agent/model/model.ts";
import { scripted } from "./scripted.ts";

const request: ModelRequest = { messages: [user("q")] };

describe("scripted", () => {
  test("returns its replies in order and records the requests", async () => {
    const whole = assistant("two", { stopReason: "length" }) as ModelReply;
    const model = scripted(["one", whole, ({ messages }) => `three of ${messages.length}`, async () => whole]);
    expect(await model.complete(request)).toEqual({
      role: "assistant",
      content: "one",
      provider: "scripted",
      model: "scripted",
      stopReason: "stop",
    });
    expect(await model.complete(request)).toBe(whole);
    expect(await model.complete(request)).toMatchObject({ content: "three of 1" });
    expect(await model.complete(request)).toBe(whole);
    expect(model.requests).toEqual([request, request, request, request]);
  });

  test("throws a scripted error, and continues with the next reply", async () => {
    const model = scripted([new Error("rate limit"), "after it"]);
    await expect(model.complete(request)).rejects.toThrow("rate limit");
    expect(await model.complete(request)).toMatchObject({ content: "after it" });
  });

  test("throws if it gets more requests than it has replies", async () => {
    const model = scripted(["only"]);
    await model.complete(request);
    await expect(model.complete(request)).rejects.toThrow("has 1 replies and was asked 2 times");
  });

  test("has a name and a context window", () => {
    expect(scripted([])).toMatchObject({ provider: "scripted", id: "scripted" });
    expect(scripted([], { contextWindow: 100 }).contextWindow).toBe(100);
  });

  test("uses up no reply for a request that is aborted already", async () => {
    const model = scripted(["one"]);
    await expect(model.complete(request, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(await model.complete(request)).toMatchObject({ content: "one" });
  });

  test("rejects without waiting when it is aborted during a reply", async () => {
    const controller = new AbortController();
    const model = scripted([() => new Promise<string>(() => {})]);
    const waiting = model.complete(request, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("waits for a slow reply if it is not aborted", async () => {
    const { signal } = new AbortController();
    const model = scripted([() => new Promise<string>((resolve) => setImmediate(resolve, "slow"))]);
    expect(await model.complete(request, { signal })).toMatchObject({ content: "slow" });
  });

  test("keeps the request itself, whose messages may be read later", async () => {
    let reads = 0;
    const lazy: ModelRequest = {
      get messages() {
        reads++;
        return [];
      },
    };
    const model = scripted(["one", "two"]);
    await model.complete(lazy);
    await collect(model.stream?.(lazy));
    expect(model.requests).toHaveLength(2);
    expect(model.requests.every((asked) => asked === lazy)).toBe(true);
    expect(reads).toBe(0);
  });

  test("streams a reply as deltas, with the whole reply at the end", async () => {
    const reply: ModelReply = {
      role: "assistant",
      content: [
        { type: "thinking", text: "hm, yes", signature: "s" },
        { type: "image", mediaType: "image/png", data: "AA==" },
        { type: "text", text: " two  words\n" },
      ],
      toolCalls: [{ id: "c1", name: "look", arguments: '{"at": 1}' }],
      usage: usage(3, 4),
    };
    expect(await collect(scripted([reply]).stream?.(request))).toEqual([
      { type: "thinking-delta", text: "hm," },
      { type: "thinking-delta", text: " yes" },
      { type: "text-delta", text: " two" },
      { type: "text-delta", text: "  words\n" },
      { type: "tool-call-delta", index: 0, id: "c1", name: "look" },
      { type: "tool-call-delta", index: 0, arguments: '{"at":' },
      { type: "tool-call-delta", index: 0, arguments: " 1}" },
      { type: "finish", stopReason: "tool_calls", usage: usage(3, 4), reply },
    ]);
    const plain = { role: "assistant", content: null } as const;
    expect(await collect(scripted([plain]).stream?.(request))).toEqual([
      { type: "finish", stopReason: "stop", reply: plain },
    ]);
  });

  test("streams the deltas of a generator unchanged, and assembles them for a request without streaming", async () => {
    const pieces: ModelDelta[] = [
      { type: "thinking-delta", text: "t" },
      { type: "text-delta", text: "a" },
      { type: "tool-call-delta", index: 0, id: "c1", name: "look", arguments: "{}" },
      { type: "finish", stopReason: "tool_calls", usage: usage(1, 2) },
    ];
    const model = scripted([generate(pieces), generate(pieces), generate(pieces.slice(0, 1))]);
    expect(await collect(model.stream?.(request))).toEqual(pieces);
    expect(await model.complete(request)).toEqual({
      role: "assistant",
      content: [
        { type: "thinking", text: "t" },
        { type: "text", text: "a" },
      ],
      toolCalls: [{ id: "c1", name: "look", arguments: "{}" }],
      provider: "scripted",
      model: "scripted",
      stopReason: "tool_calls",
      usage: usage(1, 2),
    });
    await expect(model.complete(request)).rejects.toMatchObject({ code: "MODEL_FAILED", kind: "connection" });
  });

  test("throws a scripted error within a stream", async () => {
    const model = scripted([
      new Error("rate limit"),
      async function* () {
        yield { type: "text-delta", text: "half" };
        throw new Error("cut");
      },
    ]);
    await expect(collect(model.stream?.(request))).rejects.toThrow("rate limit");
    await expect(collect(model.stream?.(request))).rejects.toThrow("cut");
  });

  test("ends a stream at an abort, even while it waits for the next delta, and closes the generator", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    let ended = false;
    const model = scripted([
      async function* () {
        try {
          yield { type: "text-delta", text: "one" };
          yield { type: "text-delta", text: "two" };
        } finally {
          ended = true;
        }
      },
      async function* () {
        await new Promise(() => {});
        yield { type: "text-delta", text: "never" };
      },
    ]);
    const reading = async (): Promise<void> => {
      for await (const _ of model.stream?.(request, { signal: controller.signal }) ?? []) controller.abort(reason);
    };
    await expect(reading()).rejects.toBe(reason);
    expect(ended).toBe(true);
    const waiting = new AbortController();
    const stuck = collect(model.stream?.(request, { signal: waiting.signal }));
    waiting.abort(reason);
    await expect(stuck).rejects.toBe(reason);
    expect(getEventListeners(waiting.signal, "abort")).toEqual([]);
  });

  test("cannot stream when it is told not to", () => {
    expect(scripted([], { stream: false }).stream).toBeUndefined();
    expect("stream" in scripted([], { stream: false })).toBe(false);
    expect(scripted([]).stream).toBeTypeOf("function");
  });
});

function generate(deltas: readonly ModelDelta[]): () => AsyncGenerator<ModelDelta> {
  return async function* () {
    yield* deltas;
  };
}

async function collect(stream: AsyncIterable<ModelDelta> | undefined): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream ?? []) deltas.push(delta);
  return deltas;
}
