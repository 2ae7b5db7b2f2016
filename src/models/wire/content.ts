import type { ModelReply } from "../../agent/model/model.ts";
import type { AssistantMessage, ContentPart, ToolCall } from "../../session/message.ts";

/** An image or a file of a message. */
export type DataPart = Extract<ContentPart, { readonly data: string }>;

/** The address form of an image or a file, which carries its data in itself. */
export function dataUrl(part: DataPart): string {
  return `data:${part.mediaType};base64,${part.data}`;
}

/** The text of a file that is text, or undefined for any other file. */
export function fileText(part: DataPart): string | undefined {
  if (!/^(text\/|application\/(json|xml|yaml)\b)/.test(part.mediaType)) return undefined;
  return Buffer.from(part.data, "base64").toString("utf8");
}

/** The text of a file that is text, below its name, or undefined for any other file. */
export function namedText(part: DataPart): string | undefined {
  const text = fileText(part);
  return text === undefined || part.name === undefined ? text : `${part.name}:\n${text}`;
}

/** What a model is told in place of something that its wire cannot carry, so that it does not answer as if nothing was there. */
export function unreadable(part: DataPart): string {
  const name = part.name === undefined ? "" : ` ${part.name}`;
  return `[${part.type}${name} of type ${part.mediaType}, which cannot be shown to this model]`;
}

/** The content of an answer: null for tool calls alone, plain text where that says all, else parts. */
export function replyContent(parts: readonly ContentPart[], toolCalls: readonly ToolCall[]): ModelReply["content"] {
  const shown = parts.filter((part) => part.type !== "text" || part.text !== "");
  if (shown.length === 0) return toolCalls.length > 0 ? null : "";
  const [only] = shown;
  return shown.length === 1 && only?.type === "text" ? only.text : shown;
}

/** Whether a message asks for exactly the calls of these ids, in their order. */
export function callsAre(message: AssistantMessage, ids: readonly string[]): boolean {
  const calls = message.toolCalls ?? [];
  return calls.length === ids.length && calls.every((call, index) => call.id === ids[index]);
}
