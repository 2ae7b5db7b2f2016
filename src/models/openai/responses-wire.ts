import type { ModelDelta } from "../../agent/model/model.ts";
import { copyJson } from "../../internal/json.ts";
import type { ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { cutShort, malformed, WireError } from "../wire/failure.ts";
import { type Fields, fieldsOf, listOf, numberOf, stringOf } from "../wire/json-reader.ts";
import type { Wire, WireAnswer, WireStream } from "../wire/wire-model.ts";
import type { OpenAICache } from "./cache-fields.ts";
import type { OpenAIClient } from "./openai-client.ts";
import { takesSchema } from "./output-format.ts";
import { responsesBody } from "./responses-body.ts";

/** The Responses API. */
export function responsesWire(id: string, cache: OpenAICache): Wire<OpenAIClient> {
  return {
    provider: "openai",
    body: (request, client) => responsesBody(id, request, client.baseURL, cache),
    takesOutput: () => takesSchema(id),
    streaming: {},
    send: (client, body, call) => client.responses.create(body, call),
    readAnswer: (answer) => readResponse(fieldsOf(answer), []),
    startStream: () => new ResponsesStream(),
  };
}

class ResponsesStream implements WireStream {
  /** Finished items by their position in the answer; some endpoints omit them in the final event. */
  readonly #items: Fields[] = [];
  /** From the position of a call in the answer to its position among the calls. */
  readonly #calls = new Map<number, number>();
  #response: Fields | undefined;

  read(value: unknown): ModelDelta[] {
    const event = fieldsOf(value);
    const type = stringOf(event["type"]);
    const place = numberOf(event["output_index"]) ?? 0;
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return [{ type: "text-delta", text: stringOf(event["delta"]) }];
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return [{ type: "thinking-delta", text: stringOf(event["delta"]) }];
      case "response.output_item.added":
        return this.#begin(place, fieldsOf(event["item"]));
      case "response.function_call_arguments.delta":
        return [this.#callDelta(place, { arguments: stringOf(event["delta"]) })];
      case "response.output_item.done":
        this.#items[place] = fieldsOf(event["item"]);
        return [];
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.#response = fieldsOf(event["response"]);
        return [];
      case "error":
        throw new WireError(Object.hasOwn(event, "message") ? { ...event, type: "" } : fieldsOf(event["error"]));
      default:
        return [];
    }
  }

  finish(): WireAnswer {
    if (this.#response === undefined) throw cutShort("openai");
    return readResponse(this.#response, Object.values(this.#items));
  }

  #begin(place: number, item: Fields): ModelDelta[] {
    if (item["type"] !== "function_call") return [];
    this.#calls.set(place, this.#calls.size);
    const args = stringOf(item["arguments"]);
    return [
      this.#callDelta(place, {
        id: stringOf(item["call_id"]),
        name: stringOf(item["name"]),
        ...(args === "" ? {} : { arguments: args }),
      }),
    ];
  }

  #callDelta(place: number, said: { id?: string; name?: string; arguments?: string }): ModelDelta {
    return { type: "tool-call-delta", index: this.#calls.get(place) ?? 0, ...said };
  }
}

function readResponse(response: Fields, items: readonly Fields[]): WireAnswer {
  const status = stringOf(response["status"]);
  if (status === "failed") throw new WireError(fieldsOf(response["error"]));
  if (!Array.isArray(response["output"])) throw malformed("openai", "it holds no output");
  if (status !== "completed" && status !== "incomplete") throw malformed("openai", "it is not completed");
  const output = response["output"].length > 0 ? response["output"].map(fieldsOf) : items;
  const parts: ContentPart[] = [];
  const toolCalls: ToolCall[] = [];
  let refused = false;
  for (const item of output) {
    if (item["type"] === "reasoning") parts.push(...thinkingOf(item));
    if (item["type"] === "function_call")
      toolCalls.push({
        id: stringOf(item["call_id"]),
        name: stringOf(item["name"]),
        arguments: stringOf(item["arguments"]) || "{}",
      });
    if (item["type"] !== "message") continue;
    for (const part of listOf(item["content"]).map(fieldsOf)) {
      refused ||= part["type"] === "refusal";
      parts.push({ type: "text", text: stringOf(part["text"]) + stringOf(part["refusal"]) });
    }
  }
  return {
    parts,
    toolCalls,
    stopReason: refused ? "content_filter" : stopReasonOf(response, toolCalls),
    model: stringOf(response["model"]),
    usage: usageOf(response["usage"]),
    ...(output.some(isOwn) ? { providerData: copyJson({ api: "responses", output: output.filter(canReturn) }) } : {}),
  };
}

function thinkingOf(item: Fields): ContentPart[] {
  const texts = [...listOf(item["summary"]), ...listOf(item["content"])].map((part) =>
    stringOf(fieldsOf(part)["text"]),
  );
  const text = texts.filter((piece) => piece !== "").join("\n\n");
  return text === "" ? [] : [{ type: "thinking", text }];
}

/** Whether an item holds more than text and calls, and can be sent back. */
function isOwn(item: Fields): boolean {
  return canReturn(item) && item["type"] !== "message" && item["type"] !== "function_call";
}

/** Whether an item can be sent back. Thinking needs its encrypted content: the provider stores nothing under its id. */
function canReturn(item: Fields): boolean {
  return item["type"] !== "reasoning" || stringOf(item["encrypted_content"]) !== "";
}

function stopReasonOf(response: Fields, toolCalls: readonly ToolCall[]): StopReason {
  if (response["status"] === "incomplete")
    return fieldsOf(response["incomplete_details"])["reason"] === "content_filter" ? "content_filter" : "length";
  return toolCalls.length > 0 ? "tool_calls" : "stop";
}

function usageOf(value: unknown): Usage | undefined {
  const usage = fieldsOf(value);
  const inputTokens = numberOf(usage["input_tokens"]);
  const outputTokens = numberOf(usage["output_tokens"]);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  const details = fieldsOf(usage["input_tokens_details"]);
  const cacheReadTokens = numberOf(details["cached_tokens"]);
  const cacheWriteTokens = numberOf(details["cache_write_tokens"]);
  const reasoningTokens = numberOf(fieldsOf(usage["output_tokens_details"])["reasoning_tokens"]);
  return {
    inputTokens,
    outputTokens,
    totalTokens: numberOf(usage["total_tokens"]) ?? inputTokens + outputTokens,
    ...(cacheReadTokens === undefined ? {} : { cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}
