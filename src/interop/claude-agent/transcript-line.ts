import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { isTimestamp } from "../../session/log/header.ts";
import type { Content, ContentPart, Message, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";

/** The key of a transcript, like the SDK's `SessionKey`. A `subpath` names the transcript of a sub-agent. */
export interface TranscriptKey {
  readonly projectKey: string;
  readonly sessionId: string;
  readonly subpath?: string;
}

/** One line of a transcript, like the SDK's `SessionStoreEntry`, with any content. */
export type TranscriptLine = { type: string; uuid?: string; timestamp?: string; [field: string]: unknown };

/** The `customType` of entries for lines that are not messages. */
const LINE = "claude-agent.line";

/** The metadata field of a message that holds its line without the texts. */
const REST = "claudeAgent";

/** A line as an entry: a message becomes a turn, any other line a `custom` entry. `counts`: whether to record its usage. */
export function draftOf(line: TranscriptLine, counts: boolean): EntryDraft {
  const message = turnOf(line, counts);
  return {
    ...(line.uuid === undefined ? {} : { id: line.uuid }),
    ...(isTimestamp(line.timestamp) ? { timestamp: line.timestamp } : {}),
    ...(message === null
      ? { type: "custom", customType: LINE, data: line as JsonObject }
      : { type: "message", message }),
  };
}

/** The line that an entry was made from; null if it was made otherwise. */
export function lineOf(entry: Entry): TranscriptLine | null {
  if (entry.type === "custom" && entry.customType === LINE) return structuredClone(entry.data) as TranscriptLine;
  const rest = entry.type === "message" ? (entry.message.metadata?.[REST] as JsonObject | undefined) : undefined;
  if (entry.type !== "message" || rest === undefined) return null;
  const line = structuredClone(rest) as TranscriptLine & { message: { content?: JsonValue } };
  line.message.content = withTexts(line.message.content, textsOf(entry.message.content));
  return line;
}

/** The message id that all lines of one answer share; null for other lines. Each of these lines has the usage of the whole. */
export function messageIdOf(line: TranscriptLine): string | null {
  const { id } = (line.type === "assistant" ? (line["message"] as { id?: unknown }) : null) ?? {};
  return typeof id === "string" ? id : null;
}

function turnOf(line: TranscriptLine, counts: boolean): Message | null {
  const { type, message } = line as { type: string; message?: JsonObject };
  if ((type !== "user" && type !== "assistant") || typeof message !== "object" || message === null) return null;
  const { content } = message;
  if (content === undefined || hasGap(content)) return null;
  const said: ContentPart[] = [];
  const rest = withoutTexts(content, said);
  const metadata = { [REST]: { ...line, message: { ...message, content: rest } } as JsonObject };
  const text: Content = typeof content === "string" ? content : said;
  const blocks = Array.isArray(content) ? (content as readonly JsonObject[]) : [];
  if (type === "assistant")
    return { role: "assistant", content: text, metadata, ...answerFields(message, blocks, counts) };
  const [result] = blocks;
  if (blocks.length !== 1 || result?.["type"] !== "tool_result" || !result["tool_use_id"])
    return { role: "user", content: text, metadata };
  const failed = result["is_error"] === true ? { isError: true } : {};
  return { role: "tool", toolCallId: String(result["tool_use_id"]), name: "", content: text, metadata, ...failed };
}

/** Whether a text is missing where `withoutTexts` expects one: `withTexts` could not tell it from a removed text. */
function hasGap(content: JsonValue): boolean {
  if (!Array.isArray(content)) return typeof content !== "string";
  return content.some((block: JsonObject | null) => {
    if (typeof block !== "object" || block === null) return true;
    if (block["type"] === "text") return typeof block["text"] !== "string";
    return block["type"] === "tool_result" && block["content"] !== undefined && hasGap(block["content"]);
  });
}

/** Content without the texts of its text blocks and results; the texts are appended to `said` in order. */
function withoutTexts(content: JsonValue, said: ContentPart[]): JsonValue {
  if (typeof content === "string") return take(content, said);
  return (content as readonly JsonObject[]).map((block) => {
    if (block["type"] === "text") return { ...block, text: take(block["text"] as string, said) };
    if (block["type"] !== "tool_result" || block["content"] === undefined) return block;
    return { ...block, content: withoutTexts(block["content"], said) };
  });
}

function take(text: string, said: ContentPart[]): null {
  said.push({ type: "text", text });
  return null;
}

/** Restores the texts that `withoutTexts` removed. */
function withTexts(rest: JsonValue | undefined, texts: string[]): JsonValue {
  if (rest === null) return texts.shift() ?? "";
  return (rest as readonly JsonObject[]).map((block) => {
    if (block["type"] === "text") return { ...block, text: texts.shift() ?? "" };
    if (block["type"] !== "tool_result" || block["content"] === undefined) return block;
    return { ...block, content: withTexts(block["content"], texts) };
  });
}

function textsOf(content: Content | null): string[] {
  if (typeof content === "string") return [content];
  return (content ?? []).map((part) => ("text" in part ? part.text : ""));
}

function answerFields(
  { model, usage }: JsonObject,
  blocks: readonly JsonObject[],
  counts: boolean,
): { provider?: string; model?: string; usage?: Usage; toolCalls?: readonly ToolCall[] } {
  const toolCalls = blocks.flatMap(({ type, id, name, input }) =>
    type === "tool_use" && id && name ? [{ id: `${id}`, name: `${name}`, arguments: JSON.stringify(input ?? {}) }] : [],
  );
  const used = typeof usage === "object" && counts ? usageOf(usage as JsonObject) : null;
  return {
    ...(typeof model === "string" ? { provider: "anthropic", model } : {}),
    ...(used === null ? {} : { usage: used }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}

function usageOf(usage: JsonObject): Usage {
  const count = (field: string): number => {
    const value = usage[field];
    return typeof value === "number" && value > 0 ? Math.round(value) : 0;
  };
  const cacheReadTokens = count("cache_read_input_tokens");
  const cacheWriteTokens = count("cache_creation_input_tokens");
  const inputTokens = count("input_tokens") + cacheReadTokens + cacheWriteTokens;
  const outputTokens = count("output_tokens");
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, cacheReadTokens, cacheWriteTokens };
}
