import type { Model, ModelReply, ModelRequest } from "../src/agent/model/model.ts";
import { anthropic } from "../src/models/anthropic/anthropic.ts";
import { openai } from "../src/models/openai/openai.ts";
import type { ToolCall } from "../src/session/message.ts";
import type { PromptCache, PromptCacheUsage } from "../src/testing/cache/prompt-cache.ts";

/** The answer of an emulated provider. */
export interface CachedAnswer {
  readonly text?: string;
  readonly calls?: readonly Pick<ToolCall, "id" | "name">[];
}

/** A request as a provider got it, and what its cache made of it. */
export interface CachedRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly usage: PromptCacheUsage;
}

/**
 * A model whose requests are built for a provider, and counted by an emulation of that provider's prompt cache. Several models can
 * share a cache, as processes do. Answers name the dated version of the model, as those of providers do.
 */
export function cachedModel(
  provider: "anthropic" | "openai",
  cache: PromptCache,
  options: {
    readonly id?: string;
    readonly contextWindow?: number;
    /** How long the provider is asked to keep its cache. */
    readonly lifetime?: "1h" | "24h";
    readonly answer: (request: ModelRequest) => CachedAnswer;
    readonly onRequest?: (request: CachedRequest) => void;
  },
): Model {
  const {
    lifetime,
    id = provider === "anthropic" ? "claude-opus-5" : "gpt-5.2",
    answer,
    onRequest = () => {},
  } = options;
  let answering: CachedAnswer = {};
  const ask = (body: object) => {
    // The client sends JSON.
    const sent = JSON.parse(JSON.stringify(body)) as CachedRequest["body"];
    const usage = cache.ask(sent);
    onRequest({ body: sent, usage });
    return { usage, ...answering };
  };
  const shared = { ...(options.contextWindow !== undefined && { contextWindow: options.contextWindow }) };
  const { complete, ...model } =
    provider === "anthropic"
      ? anthropic(id, {
          ...shared,
          ...(lifetime === "1h" && { cache: { lifetime } }),
          client: { messages: { create: async (body: object) => anthropicAnswer(id, ask(body)) } } as never,
        })
      : openai(id, {
          ...shared,
          cache: lifetime === "24h" ? { lifetime } : true,
          client: { chat: { completions: { create: async (body: object) => chatAnswer(id, ask(body)) } } } as never,
        });
  const { stream: _stream, ...whole } = model;
  return {
    ...whole,
    complete(request, call): Promise<ModelReply> {
      answering = answer(request);
      return complete(request, call);
    },
  };
}

type Answering = CachedAnswer & { readonly usage: PromptCacheUsage };

function anthropicAnswer(model: string, { usage, text = "", calls = [] }: Answering): object {
  return {
    type: "message",
    model: `${model}-20260101`,
    content: [
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.map(({ id, name }) => ({ type: "tool_use", id, name, input: {} })),
    ],
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: {
      input_tokens: usage.fresh,
      output_tokens: 5,
      cache_read_input_tokens: usage.read,
      cache_creation_input_tokens: usage.written,
    },
  };
}

function chatAnswer(
  model: string,
  { usage, text = null, calls = [] }: Omit<Answering, "text"> & { text?: string | null },
): object {
  const tools = calls.map(({ id, name }) => ({ id, type: "function", function: { name, arguments: "{}" } }));
  const input = usage.read + usage.written + usage.fresh;
  return {
    model: `${model}-2026-01-01`,
    choices: [
      {
        finish_reason: calls.length > 0 ? "tool_calls" : "stop",
        message: { role: "assistant", content: text, ...(tools.length > 0 && { tool_calls: tools }) },
      },
    ],
    usage: {
      prompt_tokens: input,
      completion_tokens: 5,
      total_tokens: input + 5,
      prompt_tokens_details: {
        cached_tokens: usage.read,
        ...(usage.written > 0 && { cache_write_tokens: usage.written }),
      },
    },
  };
}
