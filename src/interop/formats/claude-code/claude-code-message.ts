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
import { countIn, isFields, isFilled, parseArguments, placeholderOf, textIn, textOrParts } from "../foreign-values.ts";
import { inlineAttachment } from "../../../session/blob.ts";

const STOP_REASONS: readonly (readonly [string, StopReason])[] = [
  ["end_turn", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["refusal", "content_filter"],
  ["stop_sequence", "stop"],
  ["end_turn", "aborted"],
  ["end_turn", "error"],
];

/** The content of a user's or a tool's blocks, with a placeholder for each unknown block; null if the value is no content. */
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

/** Content as blocks; a plain text stays a text. */
export function blocksOfContent(content: Content, report: WriteReport): JsonValue {
  if (typeof content === "string") return content;
  return content.flatMap((part) => blocksOfPart(part, report));
}

function blocksOfPart(part: ContentPart, report: WriteReport): JsonObject[] {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "image":
      return [
        { type: "image", source: { type: "base64", media_type: part.mediaType, data: inlineAttachment(part).data } },
      ];
    case "file": {
      const source = { type: "base64", media_type: part.mediaType, data: inlineAttachment(part).data };
      return [{ type: "document", source, ...(part.name === undefined ? {} : { title: part.name }) }];
    }
    default:
      report.omit("thinking of a user");
      return [];
  }
}

/** The message for a `tool_result` block; null for other blocks. */
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

/** Combines lines with the same `message.id` into one answer. */
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

/** Adds a block to the answer: unknown blocks as placeholders; encrypted thinking is dropped, only the provider can read it. */
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

/** The blocks of an answer: its content, then its calls. */
export function blocksOfAnswer(message: AssistantMessage, report: WriteReport): JsonObject[] {
  const { content, toolCalls = [] } = message;
  const said = partsOf(content).flatMap((part): JsonObject[] => {
    if (part.type !== "thinking") return blocksOfPart(part, report);
    // The provider rejects a request that holds thinking without its signature.
    if (part.signature === undefined) report.omit("thinking without a signature");
    return part.signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
  });
  const calls = toolCalls.map(({ id, name, arguments: text }): JsonObject => {
    const input = parseArguments(text);
    if (input === null) report.omit("arguments that are not JSON");
    return { type: "tool_use", id, name, input: input ?? {} };
  });
  return [...said, ...calls];
}

/** The fields of the API message around the blocks, the same in each line of an answer. */
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
  const count = (key: string): number => countIn(value[key]);
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
