import { describe, expect, test } from "vitest";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../agent/model/model.ts";
import { ModelError } from "../agent/model/model-error.ts";
import { offline } from "../models/offline.ts";
import type { ToolCall } from "../session/message.ts";
import { modelSkipReason, type ModelSubject } from "./model-case.ts";
import { modelCases } from "./model-cases.ts";

type Answer = Model["complete"];
type Stream = NonNullable<Model["stream"]>;

const sound = offline();
const answer: Answer = (request, options) => sound.complete(request, options);
const stream: Stream = (request, options) => sound.stream?.(request, options) ?? (async function* () {})();

/** A correct model with one defect. */
const broken = (change: Partial<Model>): ModelSubject => ({ open: () => ({ ...sound, ...change }) });
const replies = (change: (reply: ModelReply, request: ModelRequest) => unknown): ModelSubject =>
  broken({
    complete: async (request, options) => change(await answer(request, options), request) as ModelReply,
  });
const pieces = (change: (deltas: readonly ModelDelta[]) => readonly ModelDelta[]): ModelSubject =>
  broken({
    async *stream(request) {
      const deltas: ModelDelta[] = [];
      for await (const delta of stream(request)) deltas.push(delta);
      yield* change(deltas);
    },
  });
const failing = (error: unknown): ModelSubject => ({
  open: () => sound,
  openFailing: () => ({
    ...sound,
    complete: () => Promise.reject(error),
    async *stream() {
      yield* [];
      throw error;
    },
  }),
  attempts: () => 2,
});
const calls = (change: (call: ToolCall) => ToolCall): ModelSubject =>
  replies((reply) => (reply.toolCalls ? { ...reply, toolCalls: reply.toolCalls.map(change) } : reply));
const deaf: Partial<Model> = { complete: (request) => answer(request), stream: (request) => stream(request) };
const silentlyWrapped: ModelSubject["openSilent"] = () => {
  const reject = (signal: AbortSignal | undefined): Promise<never> =>
    new Promise((_, refuse) =>
      signal?.addEventListener("abort", () => refuse(new Error("aborted", { cause: signal.reason }))),
    );
  return {
    ...sound,
    complete: (_, options) => reject(options?.signal),
    async *stream(_, options) {
      await reject(options?.signal);
      yield* [];
    },
  };
};

/** For each case, models that fail it. */
const defects: Readonly<Record<string, readonly ModelSubject[]>> = {
  "has a provider and an id, and a context window that is a positive integer if it has one": [
    broken({ provider: "" }),
    broken({ id: "" }),
    broken({ contextWindow: 0.5 }),
  ],
  'answers a question with text and the stop reason "stop"': [
    replies((reply) => ({ ...reply, content: null })),
    replies((reply) => ({ ...reply, stopReason: "length" })),
    replies((reply) => ({ ...reply, stopReason: "end_turn" })),
    replies((reply) => ({ ...reply, role: "model" })),
    replies((reply) => ({ ...reply, toolCalls: [{ id: "a", name: "b", arguments: "{}" }] })),
  ],
  "the answer is JSON, so that a log can store it": [replies((reply) => ({ ...reply, providerData: new Map() }))],
  "counts tokens as integers, with a total of at least input plus output": [
    replies(({ usage: _, ...reply }) => reply),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 1 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1.5, outputTokens: 1, totalTokens: 3 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 0, outputTokens: 1, totalTokens: 3 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 3, cacheReadTokens: 2 } })),
    replies((reply) => ({ ...reply, cost: Number.NaN })),
  ],
  "does not mix up concurrent requests": [mixing()],
  "returns characters of all scripts unchanged": [
    replies((reply) => ({ ...reply, content: String(reply.content).replace(/[^\0-\x7f]/g, "?") })),
  ],
  "accepts a deeply frozen request": [
    broken({
      complete(request) {
        (request.messages as unknown[]).push({});
        return answer(request);
      },
    }),
  ],
  "accepts a request whose messages are a getter": [broken({ complete: () => answer({ messages: [] }) })],
  "accepts several consecutive system messages and user messages": [refusing(({ messages }) => messages.length > 1)],
  "accepts content in several parts": [refusing(({ messages }) => typeof messages[0]?.content !== "string")],
  "continues the conversation of another model, with its thinking, tool calls and provider data": [
    refusing(({ messages }) => messages.some((message) => "providerData" in message)),
  ],
  "accepts an image, or refuses it with an error that is not retryable": [
    failingAlways(new TypeError("no images")),
    failingAlways(new ModelError("server", "No images.", { provider: "offline" })),
  ],
  "accepts settings, or refuses them with an error that is not retryable": [
    failingAlways(new TypeError("no settings")),
  ],
  'with toolChoice "required", calls an offered tool with arguments that match its schema': [
    replies(({ toolCalls: _, ...reply }) => ({ ...reply, content: "no" })),
    replies((reply) => ({ ...reply, stopReason: "stop" })),
    calls((call) => ({ ...call, name: "other" })),
    calls((call) => ({ ...call, arguments: "{}" })),
    calls((call) => ({ ...call, arguments: "" })),
    calls((call) => ({ ...call, id: "" })),
    replies((reply) => ({ ...reply, toolCalls: [...(reply.toolCalls ?? []), ...(reply.toolCalls ?? [])] })),
  ],
  "with a tool named in toolChoice, calls that tool": [calls((call) => ({ ...call, name: "find_order" }))],
  'with toolChoice "none", calls no tool': [
    broken({ complete: (request) => answer({ ...request, toolChoice: "required" }) }),
  ],
  "continues from tool results and messages that a log returned": [
    refusing(({ messages }) => messages.at(-1)?.role === "tool"),
  ],
  "continues after a failed tool call": [refusing(({ messages }) => messages.some((message) => "isError" in message))],
  "streams the same tool calls as it returns without streaming": [
    pieces((deltas) => deltas.filter((delta) => !("arguments" in delta))),
    pieces((deltas) => deltas.filter((delta) => delta.type === "finish")),
  ],
  "streams an answer with exactly one finish, at the end": [
    pieces((deltas) => deltas.slice(0, -1)),
    pieces((deltas) => [...deltas, ...deltas.slice(-1)]),
    pieces((deltas) => [...deltas, { type: "text-delta", text: "more" }]),
    pieces((deltas) => deltas.slice(-1)),
    { open: () => ({ provider: "p", id: "i", complete: answer }) },
  ],
  "the streamed parts add up to the answer in the finish": [pieces((deltas) => deltas.slice(1))],
  "streams the same kind of answer as it returns without streaming": [
    replies(({ usage: _, ...reply }) => reply),
    replies((reply) => ({ ...reply, provider: "other" })),
    broken({ stream: () => stream({ messages: [{ role: "user", content: "other" }] }) }),
  ],
  "does not mix up concurrent streams": [
    broken({ stream: () => stream({ messages: [{ role: "user", content: "hotel-7291 india-7291" }] }) }),
  ],
  "answers further requests after a stream was abandoned": [brokenByLeaving()],
  "rejects with the signal's reason if it is aborted before the request": [
    broken(deaf),
    broken({ complete: () => Promise.reject(new DOMException("aborted", "AbortError")) }),
  ],
  "streams nothing if it is aborted before the request": [broken(deaf)],
  "rejects with the signal's reason if it is aborted during a stream, and streams nothing more": [broken(deaf)],
  "rejects with the signal's reason if it is aborted while waiting for the provider": [
    { open: () => sound, openSilent: silentlyWrapped },
  ],
  "rejects a stream with the signal's reason if it is aborted while waiting for the provider": [
    { open: () => sound, openSilent: silentlyWrapped },
  ],
  "answers normally with a signal that is not aborted, and after an aborted request": [brokenByAbort()],
  "rejects with a ModelError with kind and message if its provider refuses the request": [
    failing(new Error("401")),
    failing(new ModelError("other", "No.", { provider: "another" })),
  ],
  "a stream rejects with the same error as a request without streaming": [failing(new Error("401"))],
  "does not retry by itself": [failing(new Error("401"))],
};

describe("the model cases", () => {
  test.for(modelCases.map((modelCase) => [modelCase.name, modelCase] as const))(
    "fail for a defective model: %s",
    async ([name, modelCase]) => {
      const subjects = defects[name] ?? [];
      expect(subjects.length).toBeGreaterThan(0);
      for (const subject of subjects) await expect(modelCase.run(subject)).rejects.toThrow();
    },
  );

  test("are skipped with a reason only if the subject lacks what they need", () => {
    const reasons = (subject: ModelSubject) =>
      new Set(modelCases.map((modelCase) => modelSkipReason(modelCase, subject)).filter((reason) => reason !== null));
    const open = () => sound;
    expect(reasons({ open })).toEqual(new Set(["the subject has no openSilent", "the subject has no openFailing"]));
    const whole = { open, openSilent: open, openFailing: open, attempts: () => 1 };
    expect(reasons(whole)).toEqual(new Set());
    expect(reasons({ ...whole, lacks: ["stream", "tools", "usage"] })).toEqual(
      new Set(["the model has no stream", "the model has no tools", "the model has no usage"]),
    );
  });
});

function refusing(when: (request: ModelRequest) => boolean): ModelSubject {
  return broken({
    async complete(request, options) {
      if (when(request)) throw new ModelError("invalid_request", "I cannot read this.", { provider: "offline" });
      return answer(request, options);
    },
  });
}

function failingAlways(error: Error): ModelSubject {
  return broken({ complete: () => Promise.reject(error) });
}

/** Answers every request with the last request that arrived. */
function mixing(): ModelSubject {
  let last: ModelRequest = { messages: [] };
  return broken({
    async complete(request) {
      last = request;
      await Promise.resolve();
      return answer(last);
    },
  });
}

function brokenByAbort(): ModelSubject {
  let dead = false;
  return broken({
    async complete(request, options) {
      dead ||= options?.signal?.aborted === true;
      if (dead) throw new Error("The connection is gone.");
      return answer(request, options);
    },
  });
}

function brokenByLeaving(): ModelSubject {
  let busy = false;
  return broken({
    complete: async (request) => {
      if (busy) throw new Error("A stream is open.");
      return answer(request);
    },
    async *stream(request) {
      busy = true;
      yield* stream(request);
      busy = false;
    },
  });
}
