import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import {
  type AssistantMessage,
  type Content,
  type ContentPart,
  type Message,
  type StopReason,
  type ToolCall,
  partsOf,
} from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import { countIn, isFields, isFilled, parseArguments, placeholderOf, textOrParts } from "../foreign-values.ts";
import type { WriteReport } from "../foreign-report.ts";
import { inlineAttachment } from "../../../session/blob.ts";

const STOP_REASONS: readonly (readonly [string, StopReason])[] = [
  ["stop", "stop"],
  ["length", "length"],
  ["toolUse", "tool_calls"],
  ["error", "error"],
  ["aborted", "aborted"],
  ["stop", "content_filter"],
];

/** Converts a pi message; null if it has no counterpart. */
export function messageOfPi(value: JsonValue | undefined): Message | null {
  if (!isFields(value)) return null;
  if (value.role === "user") {
    const content = contentOfPi(value.content);
    return content === null ? null : { role: "user", content };
  }
  if (value.role === "toolResult") {
    const { toolCallId, toolName } = value;
    if (typeof toolCallId !== "string" || typeof toolName !== "string") return null;
    const content = contentOfPi(value.content) ?? [placeholderOf(value.content)];
    const failed = value.isError === true ? { isError: true } : {};
    return { role: "tool", toolCallId, name: toolName, content: textOrParts(content), ...failed };
  }
  return value.role === "assistant" ? answerOfPi(value) : null;
}

/** A message in pi's form; `time` in milliseconds. Null if pi has no counterpart. */
export function piOfMessage(message: Message, time: number, report: WriteReport): JsonObject | null {
  switch (message.role) {
    case "user":
      return { role: "user", content: piOfContent(message.content, report), timestamp: time };
    case "tool":
      return {
        role: "toolResult",
        toolCallId: message.toolCallId,
        toolName: message.name,
        content: listOf(piOfContent(message.content, report)),
        isError: message.isError === true,
        timestamp: time,
      };
    case "assistant":
      return piOfAnswer(message, time, report);
    default:
      return null;
  }
}

/** The content of a pi message, with a placeholder for each unknown part; null if the value is no content. */
export function contentOfPi(value: JsonValue | undefined): Content | null {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? (value as readonly JsonValue[]).map(partOfPi) : null;
}

function partOfPi(part: JsonValue): ContentPart {
  const { type, text, data, mimeType } = isFields(part) ? part : {};
  if (type === "text" && typeof text === "string") return { type, text };
  if (type === "image" && typeof data === "string" && typeof mimeType === "string")
    return { type, mediaType: mimeType, data };
  return placeholderOf(part);
}

/** Content in pi's form, which has no files and no thinking outside of answers. */
export function piOfContent(content: Content, report: WriteReport): JsonValue {
  if (typeof content === "string") return content;
  return content.flatMap((part): JsonObject[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type === "image") return [{ type: "image", data: inlineAttachment(part).data, mimeType: part.mediaType }];
    report.omit(`${part.type} part`);
    return part.type === "file" ? [{ type: "text", text: `[file ${part.name ?? part.mediaType}]` }] : [];
  });
}

function answerOfPi(value: JsonObject): AssistantMessage | null {
  if (!Array.isArray(value.content)) return null;
  const parts: ContentPart[] = [];
  const toolCalls: ToolCall[] = [];
  for (const part of value.content as readonly JsonValue[]) {
    if (!isFields(part)) parts.push(placeholderOf(part));
    else if (part.type === "text" && typeof part.text === "string") parts.push({ type: "text", text: part.text });
    else if (part.type === "thinking" && typeof part.thinking === "string") {
      const signature = typeof part.thinkingSignature === "string" ? { signature: part.thinkingSignature } : {};
      parts.push({ type: "thinking", text: part.thinking, ...signature });
    } else if (part.type === "toolCall" && isFilled(part.id) && isFilled(part.name))
      toolCalls.push({ id: part.id, name: part.name, arguments: JSON.stringify(part.arguments ?? {}) });
    else parts.push(placeholderOf(part));
  }
  const stop = STOP_REASONS.find(([reason]) => reason === value.stopReason)?.[1];
  const usage = usageOfPi(value.usage);
  return {
    role: "assistant",
    content: parts.length === 0 ? null : textOrParts(parts),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(typeof value.provider === "string" ? { provider: value.provider } : {}),
    ...(typeof value.model === "string" ? { model: value.model } : {}),
    ...usage,
    ...(stop === undefined ? {} : { stopReason: stop }),
  };
}

function piOfAnswer(message: AssistantMessage, time: number, report: WriteReport): JsonObject {
  const { content, toolCalls = [], provider, model, stopReason } = message;
  const said = partsOf(content).flatMap((part): JsonValue[] => {
    if (part.type !== "thinking") return listOf(piOfContent([part], report));
    const signature = part.signature === undefined ? {} : { thinkingSignature: part.signature };
    return [{ type: "thinking", thinking: part.text, ...signature }];
  });
  const calls = toolCalls.map(({ id, name, arguments: text }): JsonObject => {
    const input = parseArguments(text);
    if (input === null) report.omit("arguments that are not JSON");
    return { type: "toolCall", id, name, arguments: input ?? {} };
  });
  return {
    role: "assistant",
    content: [...said, ...calls],
    api: API_OF.get(provider) ?? "openai-completions",
    provider: provider ?? "unknown",
    model: model ?? "unknown",
    usage: piOfUsage(message.usage, message.cost),
    stopReason:
      STOP_REASONS.find(([, reason]) => reason === stopReason)?.[0] ?? (calls.length > 0 ? "toolUse" : "stop"),
    timestamp: time,
  };
}

/** Pi's name for the API of a provider. It matters for thinking only: pi sends thinking back only to the same API. */
const API_OF: ReadonlyMap<string | undefined, string> = new Map([
  ["anthropic", "anthropic-messages"],
  ["openai", "openai-responses"],
]);

/** Usage and cost of an answer or a summary. */
export function usageOfPi(value: JsonValue | undefined): { readonly usage?: Usage; readonly cost?: number } {
  if (!isFields(value)) return {};
  const [input, output, cacheRead, cacheWrite, total] = [
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "totalTokens",
  ].map((key) => countIn(value[key])) as [number, number, number, number, number];
  const inputTokens = input + cacheRead + cacheWrite;
  const spent = isFields(value.cost) ? countIn(value.cost.total) : 0;
  const usage = {
    inputTokens,
    outputTokens: output,
    totalTokens: total > 0 ? total : inputTokens + output,
    ...(cacheRead > 0 ? { cacheReadTokens: cacheRead } : {}),
    ...(cacheWrite > 0 ? { cacheWriteTokens: cacheWrite } : {}),
  };
  return usage.totalTokens === 0 && spent === 0 ? {} : { usage, ...(spent > 0 ? { cost: spent } : {}) };
}

/** Usage and cost in pi's form. */
export function piOfUsage(usage: Usage | undefined, cost = 0): JsonObject {
  const { inputTokens = 0, outputTokens = 0, totalTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
  return {
    input: Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens),
    output: outputTokens,
    cacheRead: cacheReadTokens,
    cacheWrite: cacheWriteTokens,
    totalTokens,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost },
  };
}

function listOf(content: JsonValue): JsonValue[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : [...(content as readonly JsonValue[])];
}
