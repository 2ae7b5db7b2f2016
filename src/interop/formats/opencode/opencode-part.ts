import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Content, ContentPart, ToolCall, ToolMessage } from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type { WriteReport } from "../foreign-report.ts";
import { countIn, isFields, isFilled, parseArguments, placeholderOf, textIn } from "../foreign-values.ts";
import { inlineAttachment } from "../../../session/blob.ts";

const CONTENT_PARTS: ReadonlySet<unknown> = new Set(["file", "reasoning", "subtask", "text", "tool"]);

/** Parts that are not sent to a model. */
const SILENT_PARTS: ReadonlySet<unknown> = new Set([
  "agent",
  "compaction",
  "patch",
  "retry",
  "snapshot",
  "step-finish",
  "step-start",
]);

/** Whether opencode writes parts of this type. */
export function isKnownPart(type: JsonValue | undefined): boolean {
  return SILENT_PARTS.has(type) || CONTENT_PARTS.has(type);
}

/** The content of a part, a placeholder if it is unknown; null for a call and for parts that are not sent to a model. */
export function contentOfPart(part: JsonObject): ContentPart | null {
  if (SILENT_PARTS.has(part.type) || part.ignored === true || callOfPart(part) !== null) return null;
  const text = textIn(part.text);
  if (part.type === "text" && text !== undefined) return { type: "text", text };
  if (part.type === "reasoning" && text !== undefined) return { type: "thinking", text, ...signatureIn(part.metadata) };
  const file = /^data:[^;,]*;base64,(.*)$/s.exec(textIn(part.url) ?? "");
  const mediaType = textIn(part.mime);
  if (part.type !== "file" || file === null || mediaType === undefined) return placeholderOf(part);
  const name = textIn(part.filename);
  const type = mediaType.startsWith("image/") ? "image" : "file";
  return { type, mediaType, data: file[1] ?? "", ...(name === undefined ? {} : { name }) };
}

/** The call in a `tool` part; null for other parts. */
export function callOfPart(part: JsonObject): ToolCall | null {
  const [id, name] = [textIn(part.callID), textIn(part.tool)];
  if (part.type !== "tool" || !isFilled(id) || !isFilled(name) || !isFields(part.state)) return null;
  return { id, name, arguments: JSON.stringify(part.state.input ?? {}) };
}

/** The result in the part of a call; null if the call has none yet. */
export function resultOfPart(part: JsonObject, { id, name }: ToolCall): ToolMessage | null {
  const state = isFields(part.state) ? part.state : {};
  const { status, output, error } = state;
  if (status === "error") return { role: "tool", toolCallId: id, name, content: textIn(error) ?? "", isError: true };
  return status === "completed" ? { role: "tool", toolCallId: id, name, content: textIn(output) ?? "" } : null;
}

/** Content as a part without ids. Thinking carries the provider's signature, which the provider requires back. */
export function partOfContent(part: ContentPart, time: number, provider = ""): JsonObject {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "thinking": {
      const { text, signature } = part;
      const sealed = signature === undefined ? {} : { metadata: { [provider]: { [sealOf(provider)]: signature } } };
      return { type: "reasoning", text, time: { start: time, end: time }, ...sealed };
    }
    default: {
      const name = part.name === undefined ? {} : { filename: part.name };
      return {
        type: "file",
        mime: part.mediaType,
        ...name,
        url: `data:${part.mediaType};base64,${inlineAttachment(part).data}`,
      };
    }
  }
}

function sealOf(provider: string): string {
  return provider === "openai" ? "reasoningEncryptedContent" : "signature";
}

function signatureIn(metadata: JsonValue | undefined): { readonly signature?: string } {
  const [provider, about] = Object.entries(isFields(metadata) ? metadata : {})[0] ?? ["", undefined];
  const signature = isFields(about) ? textIn(about[sealOf(provider)]) : undefined;
  return signature === undefined ? {} : { signature };
}

/** A call and its result as a part without ids. */
export function partOfCall(
  call: ToolCall,
  result: ToolMessage | undefined,
  time: number,
  report: WriteReport,
): JsonObject {
  const input = parseArguments(call.arguments);
  if (input === null) report.omit("arguments that are not JSON");
  const [said, when] = [{ input: input ?? {} }, { start: time, end: time }];
  const answer = result === undefined ? "The call was interrupted." : wordsOf(result.content, report);
  const state: JsonObject =
    result === undefined || result.isError === true
      ? { status: "error", ...said, error: answer, time: when }
      : { status: "completed", ...said, output: answer, title: call.name, metadata: {}, time: when };
  return { type: "tool", callID: call.id, tool: call.name, state };
}

/** Parses the token counts of opencode; undefined if there are none. */
export function usageOfOpencode(value: JsonValue | undefined): Usage | undefined {
  if (!isFields(value)) return undefined;
  const cache = isFields(value.cache) ? value.cache : {};
  const [input, output, reasoning, read, write, total] = [
    value.input,
    value.output,
    value.reasoning,
    cache.read,
    cache.write,
    value.total,
  ].map(countIn) as [number, number, number, number, number, number];
  const [inputTokens, outputTokens] = [input + read + write, output + reasoning];
  if (inputTokens + outputTokens + total === 0) return undefined;
  return {
    inputTokens,
    outputTokens,
    totalTokens: total > 0 ? total : inputTokens + outputTokens,
    ...(read > 0 ? { cacheReadTokens: read } : {}),
    ...(write > 0 ? { cacheWriteTokens: write } : {}),
    ...(reasoning > 0 ? { reasoningTokens: reasoning } : {}),
  };
}

/** Usage in the form of opencode's token counts. */
export function opencodeOfUsage(usage: Usage | undefined): JsonObject {
  const { inputTokens = 0, outputTokens = 0, totalTokens = 0 } = usage ?? {};
  const { cacheReadTokens: read = 0, cacheWriteTokens: write = 0, reasoningTokens: reasoning = 0 } = usage ?? {};
  return {
    total: totalTokens,
    input: Math.max(0, inputTokens - read - write),
    output: Math.max(0, outputTokens - reasoning),
    reasoning,
    cache: { read, write },
  };
}

function wordsOf(content: Content, report: WriteReport): string {
  if (typeof content === "string") return content;
  for (const { type } of content) if (type !== "text") report.omit(`${type} part`);
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
