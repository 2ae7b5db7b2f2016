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

/** A model that is sound but for one thing. */
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

/** For each case, models that break its promise. */
const breaches: Readonly<Record<string, readonly ModelSubject[]>> = {
  "names its provider and itself, and a window of whole tokens if it has one": [
    broken({ provider: "" }),
    broken({ id: "" }),
    broken({ contextWindow: 0.5 }),
  ],
  "answers a question with text, and stops because it is done": [
    replies((reply) => ({ ...reply, content: null })),
    replies((reply) => ({ ...reply, stopReason: "length" })),
    replies((reply) => ({ ...reply, stopReason: "end_turn" })),
    replies((reply) => ({ ...reply, role: "model" })),
    replies((reply) => ({ ...reply, toolCalls: [{ id: "a", name: "b", arguments: "{}" }] })),
  ],
  "gives an answer that a log can keep": [replies((reply) => ({ ...reply, providerData: new Map() }))],
  "counts its tokens in whole numbers, of which the total is no less than input and output": [
    replies(({ usage: _, ...reply }) => reply),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 1 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1.5, outputTokens: 1, totalTokens: 3 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 0, outputTokens: 1, totalTokens: 3 } })),
    replies((reply) => ({ ...reply, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 3, cacheReadTokens: 2 } })),
    replies((reply) => ({ ...reply, cost: Number.NaN })),
  ],
  "does not mix questions that are asked at the same time": [mixing()],
  "keeps letters of any script whole": [
    replies((reply) => ({ ...reply, content: String(reply.content).replace(/[^\0-\x7f]/g, "?") })),
  ],
  "takes a request that is frozen all through": [
    broken({
      complete(request) {
        (request.messages as unknown[]).push({});
        return answer(request);
      },
    }),
  ],
  "takes a request whose messages are read when they are asked for": [
    broken({ complete: () => answer({ messages: [] }) }),
  ],
  "takes several system messages and several user messages in a row": [refusing(({ messages }) => messages.length > 1)],
  "takes content in parts": [refusing(({ messages }) => typeof messages[0]?.content !== "string")],
  "goes on with a conversation that another model began, with its thinking, its tools and its own data": [
    refusing(({ messages }) => messages.some((message) => "providerData" in message)),
  ],
  "takes an image, or refuses it as a request that will never do": [
    failingAlways(new TypeError("no images")),
    failingAlways(new ModelError("server", "No images.", { provider: "offline" })),
  ],
  "takes settings, or refuses them as a request that will never do": [failingAlways(new TypeError("no settings"))],
  "calls a tool that it was offered when it must, with arguments as the schema asks for": [
    replies(({ toolCalls: _, ...reply }) => ({ ...reply, content: "no" })),
    replies((reply) => ({ ...reply, stopReason: "stop" })),
    calls((call) => ({ ...call, name: "other" })),
    calls((call) => ({ ...call, arguments: "{}" })),
    calls((call) => ({ ...call, arguments: "" })),
    calls((call) => ({ ...call, id: "" })),
    replies((reply) => ({ ...reply, toolCalls: [...(reply.toolCalls ?? []), ...(reply.toolCalls ?? [])] })),
  ],
  "calls the tool that it is told to call": [calls((call) => ({ ...call, name: "find_order" }))],
  "calls no tool when it must not, though some are offered": [
    broken({ complete: (request) => answer({ ...request, toolChoice: "required" }) }),
  ],
  "goes on from the results of its calls, as a log gives them back": [
    refusing(({ messages }) => messages.at(-1)?.role === "tool"),
  ],
  "goes on from a call that failed": [refusing(({ messages }) => messages.some((message) => "isError" in message))],
  "calls a tool piece by piece as it does at once": [
    pieces((deltas) => deltas.filter((delta) => !("arguments" in delta))),
    pieces((deltas) => deltas.filter((delta) => delta.type === "finish")),
  ],
  "streams an answer and finishes it once, at the end": [
    pieces((deltas) => deltas.slice(0, -1)),
    pieces((deltas) => [...deltas, ...deltas.slice(-1)]),
    pieces((deltas) => [...deltas, { type: "text-delta", text: "more" }]),
    pieces((deltas) => deltas.slice(-1)),
    { open: () => ({ provider: "p", id: "i", complete: answer }) },
  ],
  "streams the same answer that its finish tells of": [pieces((deltas) => deltas.slice(1))],
  "streams an answer of the kind that it gives at once": [
    replies(({ usage: _, ...reply }) => reply),
    replies((reply) => ({ ...reply, provider: "other" })),
    broken({ stream: () => stream({ messages: [{ role: "user", content: "other" }] }) }),
  ],
  "does not mix answers that are streamed at the same time": [
    broken({ stream: () => stream({ messages: [{ role: "user", content: "hotel-7291 india-7291" }] }) }),
  ],
  "goes on answering after a stream that was left early": [brokenByLeaving()],
  "rejects with the signal's reason when it is aborted before it begins": [
    broken(deaf),
    broken({ complete: () => Promise.reject(new DOMException("aborted", "AbortError")) }),
  ],
  "streams nothing when it is aborted before it begins": [broken(deaf)],
  "rejects with the signal's reason when it is aborted within a stream, and streams no further": [broken(deaf)],
  "rejects with the signal's reason when it is aborted while its provider is silent": [
    { open: () => sound, openSilent: silentlyWrapped },
  ],
  "ends a stream with the signal's reason when it is aborted while its provider is silent": [
    { open: () => sound, openSilent: silentlyWrapped },
  ],
  "answers as ever with a signal that is never used, and after one that was": [brokenByAbort()],
  "fails with a ModelError that says how, when its provider refuses": [
    failing(new Error("401")),
    failing(new ModelError("other", "No.", { provider: "another" })),
  ],
  "fails in a stream as it does at once": [failing(new Error("401"))],
  "tries nothing twice": [failing(new Error("401"))],
};

describe("the cases of models", () => {
  test.for(modelCases.map((modelCase) => [modelCase.name, modelCase] as const))(
    "find a model that breaks the promise: %s",
    async ([name, modelCase]) => {
      const subjects = breaches[name] ?? [];
      expect(subjects.length).toBeGreaterThan(0);
      for (const subject of subjects) await expect(modelCase.run(subject)).rejects.toThrow();
    },
  );

  test("are skipped with a reason where a subject lacks what they need, and only there", () => {
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

/** Answers every question with the last one that came in. */
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
