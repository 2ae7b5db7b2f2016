import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import {
  type AssistantMessage,
  type Content,
  type ContentPart,
  partsOf,
  type ToolCall,
  type ToolMessage,
} from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type { WriteReport } from "../foreign-report.ts";
import { countIn, isFields, isFilled, placeholderOf, textIn, textOrParts } from "../foreign-values.ts";
import { inlineAttachment } from "../../../session/blob.ts";

/** The kind of an item of a rollout. */
export type ItemKind = "input" | "reasoning" | "answer" | "call" | "output";

const KINDS: ReadonlyMap<string, ItemKind> = new Map([
  ["reasoning", "reasoning"],
  ["function_call", "call"],
  ["custom_tool_call", "call"],
  ["local_shell_call", "call"],
  ["function_call_output", "output"],
  ["custom_tool_call_output", "output"],
]);

/** The kind of an item; null if it has no counterpart. */
export function kindOfItem(item: JsonObject): ItemKind | null {
  const type = textIn(item.type) ?? "";
  // A call is part of the answer, even of a tool that the provider runs.
  if (type !== "message") return KINDS.get(type) ?? (type.endsWith("_call") ? "call" : null);
  if (item.role === "assistant") return "answer";
  return item.role === "user" && !isOfProgram(item) ? "input" : null;
}

/** The beginnings of messages that Codex sends in the user's name, for files that do not record their author. */
const OF_PROGRAM =
  /^\s*(?:<(?:environment_context|user_instructions|turn_aborted|subagent_notification|skill)\b|# AGENTS\.md)/;

/** Whether a message with the role `user` was written by Codex itself. */
export function isOfProgram(item: JsonObject): boolean {
  const about = item.internal_chat_message_metadata_passthrough;
  const kinds = isFields(about) ? about.content_item_kinds : undefined;
  if (Array.isArray(kinds) && kinds.length > 0)
    return !(kinds as readonly JsonValue[]).some((kind) => /^(?:user|compaction|unknown)\b/.test(textIn(kind) ?? ""));
  return OF_PROGRAM.test(textOfItem(item));
}

/** The text of a message item. */
export function textOfItem({ content }: JsonObject): string {
  const texts = (Array.isArray(content) ? content : []).map((part) => (isFields(part) ? textIn(part.text) : undefined));
  return texts.filter((text) => text !== undefined).join("\n");
}

/** Combines the items of an answer into one message. */
export function answerOfItems(items: readonly JsonObject[]): AssistantMessage {
  const parts: ContentPart[] = [];
  const toolCalls: ToolCall[] = [];
  for (const item of items) {
    const kind = kindOfItem(item);
    if (kind === "reasoning") parts.push(thinkingOf(item));
    else if (kind === "answer") {
      for (const part of contentOfItem(item.content) ?? [placeholderOf(item)]) parts.push(part);
    } else {
      const call = kind === "call" ? callOf(item) : null;
      if (call === null) parts.push(placeholderOf(item));
      else toolCalls.push(call);
    }
  }
  return {
    role: "assistant",
    content: parts.length === 0 ? null : textOrParts(parts),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}

/** The content parts of an item, with a placeholder for each unknown part; null if the value is no content. */
export function contentOfItem(content: JsonValue | undefined): ContentPart[] | null {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return null;
  return (content as readonly JsonValue[]).map(partOfItem);
}

function partOfItem(part: JsonValue): ContentPart {
  if (!isFields(part)) return placeholderOf(part);
  const text = textIn(part.text);
  if (text !== undefined) return { type: "text", text };
  const image = /^data:([^;,]+);base64,(.*)$/s.exec(textIn(part.image_url) ?? "");
  return image === null ? placeholderOf(part) : { type: "image", mediaType: image[1] ?? "", data: image[2] ?? "" };
}

/** One part of an answer as an item. */
export function itemOfPart(part: ContentPart, report: WriteReport): JsonObject {
  if (part.type !== "thinking")
    return { type: "message", role: "assistant", content: codexParts([part], "output_text", report) };
  const { text, signature } = part;
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  return { type: "reasoning", summary, ...(signature === undefined ? {} : { encrypted_content: signature }) };
}

/** A call as an item. */
export function itemOfCall({ id, name, arguments: text }: ToolCall): JsonObject {
  return { type: "function_call", name, arguments: text, call_id: id };
}

/** The result of a call as an item. */
export function itemOfOutput({ toolCallId, content }: ToolMessage, report: WriteReport): JsonObject {
  const output = typeof content === "string" ? content : codexParts(content, "input_text", report);
  return { type: "function_call_output", call_id: toolCallId, output };
}

/** A message of a person or of the program as an item. */
export function itemOfInput(role: "user" | "developer", content: Content, report: WriteReport): JsonObject {
  return { type: "message", role, content: codexParts(content, "input_text", report) };
}

function codexParts(content: Content, textType: string, report: WriteReport): JsonObject[] {
  return partsOf(content).map((part) => {
    if (part.type === "text") return { type: textType, text: part.text };
    if (part.type === "image" && textType === "input_text")
      return { type: "input_image", image_url: `data:${part.mediaType};base64,${inlineAttachment(part).data}` };
    report.omit(`${part.type} part`);
    return {
      type: textType,
      text: part.type === "thinking" ? part.text : `[${part.type} ${part.name ?? part.mediaType}]`,
    };
  });
}

function thinkingOf({ summary, content, encrypted_content: sealed }: JsonObject): ContentPart {
  const said = [summary, content].flatMap((parts) => (Array.isArray(parts) ? (parts as readonly JsonValue[]) : []));
  const texts = said
    .map((part) => (isFields(part) ? textIn(part.text) : undefined))
    .filter((text) => text !== undefined);
  return { type: "thinking", text: texts.join("\n\n"), ...(typeof sealed === "string" ? { signature: sealed } : {}) };
}

function callOf(item: JsonObject): ToolCall | null {
  const id = textIn(item.call_id) ?? textIn(item.id);
  if (!isFilled(id)) return null;
  if (item.type === "local_shell_call")
    return { id, name: "local_shell", arguments: JSON.stringify(item.action ?? {}) };
  const { name } = item;
  if (!isFilled(name)) return null;
  // The input of a custom tool is plain text; it is wrapped, because other providers require JSON arguments.
  const text = item.type === "custom_tool_call" ? JSON.stringify({ input: item.input ?? "" }) : textIn(item.arguments);
  return text === undefined ? null : { id, name, arguments: text };
}

/** Parses the token counts of Codex; null if the value is not an object. */
export function usageOfCodex(value: JsonValue | undefined): Usage | null {
  if (!isFields(value)) return null;
  const [inputTokens, outputTokens, totalTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens] = [
    value.input_tokens,
    value.output_tokens,
    value.total_tokens,
    value.cached_input_tokens,
    value.cache_write_input_tokens,
    value.reasoning_output_tokens,
  ].map(countIn) as [number, number, number, number, number, number];
  return {
    inputTokens,
    outputTokens,
    totalTokens,
    ...(cacheReadTokens > 0 ? { cacheReadTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
    ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
  };
}

/** Usage in the form of Codex's token counts. */
export function codexOfUsage(usage: Usage): JsonObject {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cacheReadTokens ?? 0,
    cache_write_input_tokens: usage.cacheWriteTokens ?? 0,
    output_tokens: usage.outputTokens,
    reasoning_output_tokens: usage.reasoningTokens ?? 0,
    total_tokens: usage.totalTokens,
  };
}
