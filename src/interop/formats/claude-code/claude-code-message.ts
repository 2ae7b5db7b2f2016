import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import {
  type AssistantMessage,
  type Content,
  type ContentPart,
  type StopReason,
  type ToolCall,
  type ToolMessage,
  partsOf,
} from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields, isFilled, parseArguments, textIn, textOrParts } from "../foreign-values.ts";
import { placeholderOf } from "../placeholder.ts";

const STOP_REASONS: readonly (readonly [string, StopReason])[] = [
  ["end_turn", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["refusal", "content_filter"],
  ["stop_sequence", "stop"],
  ["end_turn", "aborted"],
  ["end_turn", "error"],
];

/** What blocks of a user or of a tool say, a placeholder for each that has no counterpart; null where there are no blocks. */
export function contentOfBlocks(value: JsonValue | undefined): Content | null {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? (value as readonly JsonValue[]).map(partOfBlock) : null;
}

function partOfBlock(block: JsonValue): ContentPart {
  if (!isFields(block)) return placeholderOf(block);
  if (block.type === "text" && typeof block.text === "string") return { type: "text", text: block.text };
  if ((block.type !== "image" && block.type !== "document") || !isFields(block.source)) return placeholderOf(block);
  const { type, media_type: mediaType, data } = block.source;
  if (block.type === "document" && type === "text" && typeof data === "string") return { type: "text", text: data };
  if (type !== "base64" || typeof mediaType !== "string" || typeof data !== "string") return placeholderOf(block);
  if (block.type === "image") return { type: "image", mediaType, data };
  return { type: "file", mediaType, data, ...(typeof block.title === "string" ? { name: block.title } : {}) };
}

/** What is said, as blocks; a text stays one. */
export function blocksOfContent(content: Content, report: WriteReport): JsonValue {
  if (typeof content === "string") return content;
  return content.flatMap((part) => blocksOfPart(part, report));
}

function blocksOfPart(part: ContentPart, report: WriteReport): JsonObject[] {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "image":
      return [{ type: "image", source: { type: "base64", media_type: part.mediaType, data: part.data } }];
    case "file": {
      const source = { type: "base64", media_type: part.mediaType, data: part.data };
      return [{ type: "document", source, ...(part.name === undefined ? {} : { title: part.name }) }];
    }
    default:
      report.leave("thinking of a user");
      return [];
  }
}

/** The message of a tool's result; null for a block that is none. */
export function resultOfBlock(block: JsonValue, nameOf: (callId: string) => string | undefined): ToolMessage | null {
  if (!isFields(block) || block.type !== "tool_result" || typeof block.tool_use_id !== "string") return null;
  const content = contentOfBlocks(block.content ?? "") ?? [placeholderOf(block.content)];
  const failed = block.is_error === true ? { isError: true } : {};
  const name = nameOf(block.tool_use_id) ?? "unknown";
  return { role: "tool", toolCallId: block.tool_use_id, name, content: textOrParts(content), ...failed };
}

/** A tool's result as a block. */
export function blockOfResult(message: ToolMessage, report: WriteReport): JsonObject {
  const failed = message.isError === true ? { is_error: true } : {};
  return {
    type: "tool_result",
    tool_use_id: message.toolCallId,
    content: blocksOfContent(message.content, report),
    ...failed,
  };
}

/** The answer that several lines with the same `message.id` make up. */
export function answerOfLines(values: readonly JsonObject[]): AssistantMessage {
  const parts: ContentPart[] = [];
  const toolCalls: ToolCall[] = [];
  for (const value of values) {
    const blocks = isFields(value.message) ? value.message.content : undefined;
    if (typeof blocks === "string") parts.push({ type: "text", text: blocks });
    else
      for (const block of (Array.isArray(blocks) ? blocks : []) as readonly JsonValue[])
        takeBlock(block, parts, toolCalls);
  }
  const last = values.at(-1) as JsonObject;
  const message = isFields(last.message) ? last.message : {};
  const stop = values.some((value) => value.isApiErrorMessage === true)
    ? "error"
    : STOP_REASONS.find(([reason]) => reason === message.stop_reason)?.[1];
  const usage = usageOf(message.usage);
  return {
    role: "assistant",
    content: parts.length === 0 ? null : textOrParts(parts),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    provider: "anthropic",
    ...(typeof message.model === "string" ? { model: message.model } : {}),
    ...(usage === null ? {} : { usage }),
    ...(typeof last.costUSD === "number" ? { cost: last.costUSD } : {}),
    ...(stop === undefined ? {} : { stopReason: stop }),
  };
}

/** A placeholder stands for a block that has no counterpart; thinking that only the provider can read says nothing. */
function takeBlock(block: JsonValue, parts: ContentPart[], toolCalls: ToolCall[]): void {
  if (!isFields(block)) parts.push(placeholderOf(block));
  else if (block.type === "text" && typeof block.text === "string") parts.push({ type: "text", text: block.text });
  else if (block.type === "thinking" && typeof block.thinking === "string") {
    const signature = typeof block.signature === "string" ? { signature: block.signature } : {};
    parts.push({ type: "thinking", text: block.thinking, ...signature });
  } else if (block.type === "tool_use" && isFilled(block.id) && isFilled(block.name))
    toolCalls.push({ id: block.id, name: block.name, arguments: JSON.stringify(block.input ?? {}) });
  else if (block.type !== "redacted_thinking") parts.push(placeholderOf(block));
}

/** The blocks of an answer, in order: what it says, then what it calls. */
export function blocksOfAnswer(message: AssistantMessage, report: WriteReport): JsonObject[] {
  const { content, toolCalls = [] } = message;
  const said = partsOf(content).flatMap((part): JsonObject[] => {
    if (part.type !== "thinking") return blocksOfPart(part, report);
    // Thinking without the provider's signature is refused when it is sent back.
    if (part.signature === undefined) report.leave("thinking without a signature");
    return part.signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
  });
  const calls = toolCalls.map(({ id, name, arguments: text }): JsonObject => {
    const input = parseArguments(text);
    if (input === null) report.leave("arguments that are no JSON");
    return { type: "tool_use", id, name, input: input ?? {} };
  });
  return [...said, ...calls];
}

/** What surrounds the blocks of an answer in each of its lines. */
export function envelopeOfAnswer(message: AssistantMessage, messageId: string): JsonObject {
  const { model, usage, toolCalls = [], stopReason } = message;
  const stop = STOP_REASONS.find(([, reason]) => reason === stopReason)?.[0] ?? null;
  return {
    id: messageId,
    type: "message",
    role: "assistant",
    model: model ?? "<synthetic>",
    stop_reason: stopReason === undefined && toolCalls.length > 0 ? "tool_use" : stop,
    stop_sequence: null,
    ...(usage === undefined ? {} : { usage: blockOfUsage(usage) }),
  };
}

function usageOf(value: JsonValue | undefined): Usage | null {
  if (!isFields(value)) return null;
  const count = (key: string): number => {
    const number = value[key];
    return typeof number === "number" && Number.isFinite(number) && number > 0 ? number : 0;
  };
  const [cacheReadTokens, cacheWriteTokens] = [count("cache_read_input_tokens"), count("cache_creation_input_tokens")];
  const inputTokens = count("input_tokens") + cacheReadTokens + cacheWriteTokens;
  const outputTokens = count("output_tokens");
  if (inputTokens + outputTokens === 0) return null;
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(cacheReadTokens === 0 ? {} : { cacheReadTokens }),
    ...(cacheWriteTokens === 0 ? {} : { cacheWriteTokens }),
  };
}

function blockOfUsage({ inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 }: Usage): JsonObject {
  return {
    input_tokens: Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
  };
}

/** The id of the API's message that a line belongs to. */
export function messageIdOf(value: JsonObject): string | undefined {
  return isFields(value.message) ? textIn(value.message.id) : undefined;
}
