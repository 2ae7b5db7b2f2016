import { copyJson, type JsonValue, sameJson } from "../../internal/json.ts";
import type { ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { malformed, WireError } from "../wire/failure.ts";
import { type Fields, fieldsOf, numberOf, stringOf } from "../wire/json-reader.ts";
import type { Wire, WireAnswer } from "../wire/wire-model.ts";
import type { AnthropicClient } from "./anthropic-client.ts";
import { blocksOf, messagesBody, type MessagesOptions } from "./messages-body.ts";
import { MessagesStream } from "./messages-stream.ts";
import { outputFormat } from "./output-format.ts";

/** The Messages API. */
export function messagesWire(id: string, options: MessagesOptions): Wire<AnthropicClient> {
  return {
    provider: "anthropic",
    body: (request) => messagesBody(id, request, options),
    takesOutput: (schema) => outputFormat(id, schema) !== null,
    streaming: {},
    send: (client, body, call) => client.messages.create(body, call),
    readAnswer: (answer) => readMessage(fieldsOf(answer)),
    startStream: () => new MessagesStream(readMessage),
  };
}

/** Reads a whole message. `argumentTexts`: the arguments as the model wrote them, if they were streamed. */
function readMessage(message: Fields, argumentTexts: ReadonlyMap<unknown, string> = new Map()): WireAnswer {
  if (message["type"] === "error") throw new WireError(fieldsOf(message["error"]));
  if (!Array.isArray(message["content"])) throw malformed("anthropic", "it holds no content");
  const reason = stringOf(message["stop_reason"]);
  if (reason === "") throw malformed("anthropic", "it gives no reason to stop");
  const blocks = message["content"].map(fieldsOf);
  const parts = blocks.flatMap(partOf);
  const toolCalls = blocks
    .filter((block) => block["type"] === "tool_use")
    .map((block): ToolCall => {
      const args = argumentTexts.get(block) ?? JSON.stringify(block["input"] ?? {});
      return { id: stringOf(block["id"]), name: stringOf(block["name"]), arguments: args };
    });
  const providerData = keptBlocks(blocks, parts, toolCalls);
  return {
    parts,
    toolCalls,
    stopReason: stopReasonOf(reason, toolCalls),
    model: stringOf(message["model"]),
    usage: anthropicUsage(fieldsOf(message["usage"])),
    ...longWritesOf(fieldsOf(message["usage"])),
    ...(providerData === undefined ? {} : { providerData }),
  };
}

function partOf(block: Fields): ContentPart[] {
  if (block["type"] === "text") return [{ type: "text", text: stringOf(block["text"]) }];
  if (block["type"] !== "thinking") return [];
  const signature = stringOf(block["signature"]);
  return [{ type: "thinking", text: stringOf(block["thinking"]), ...(signature === "" ? {} : { signature }) }];
}

/** The blocks to keep, if text and calls alone cannot restore them in order; else undefined. */
function keptBlocks(
  blocks: readonly Fields[],
  parts: readonly ContentPart[],
  toolCalls: readonly ToolCall[],
): JsonValue | undefined {
  const rebuilt = blocksOf({ role: "assistant", content: parts, toolCalls });
  // A text block without citations has `citations: null`.
  const plain = blocks.map((block) => (block["citations"] === null ? { ...block, citations: undefined } : block));
  return blocks.length === 0 || sameJson(plain, rebuilt) ? undefined : copyJson(blocks);
}

function stopReasonOf(reason: string, toolCalls: readonly ToolCall[]): StopReason {
  if (reason === "max_tokens" || reason === "model_context_window_exceeded") return "length";
  if (reason === "refusal") return "content_filter";
  return toolCalls.length > 0 ? "tool_calls" : "stop";
}

/** Converts token counts: the API counts cached tokens separately, a `Usage` counts them as part of the input. */
export function anthropicUsage(usage: Fields): Usage | undefined {
  const fresh = numberOf(usage["input_tokens"]);
  const outputTokens = numberOf(usage["output_tokens"]);
  if (fresh === undefined || outputTokens === undefined) return undefined;
  const cacheReadTokens = numberOf(usage["cache_read_input_tokens"]);
  const cacheWriteTokens = cacheWritesOf(usage);
  const reasoningTokens = numberOf(fieldsOf(usage["output_tokens_details"])["thinking_tokens"]);
  const inputTokens = fresh + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0);
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(cacheReadTokens === undefined ? {} : { cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}

/** The tokens written to the cache, from their sum, else from the counts by lifetime; endpoints omit one or the other. */
function cacheWritesOf(usage: Fields): number | undefined {
  const byLifetime = fieldsOf(usage["cache_creation"]);
  const short = numberOf(byLifetime["ephemeral_5m_input_tokens"]);
  const long = numberOf(byLifetime["ephemeral_1h_input_tokens"]);
  const sum = short === undefined && long === undefined ? undefined : (short ?? 0) + (long ?? 0);
  return numberOf(usage["cache_creation_input_tokens"]) ?? sum;
}

/** The tokens written for an hour, which have a separate price. */
export function longWritesOf(usage: Fields): { longWriteTokens?: number } {
  const long = numberOf(fieldsOf(usage["cache_creation"])["ephemeral_1h_input_tokens"]);
  return long === undefined || long === 0 ? {} : { longWriteTokens: long };
}
