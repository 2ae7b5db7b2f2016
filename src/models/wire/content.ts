import type { ModelReply } from "../../agent/model/model.ts";
import type {
  AssistantMessage,
  Attachment,
  ContentPart,
  InlineAttachment,
  Message,
  ToolCall,
} from "../../session/message.ts";

/** An image or a file of a message, with its data. */
export type DataPart = InlineAttachment;

/** An image or a file as a `data:` URL. */
export function dataUrl(part: DataPart): string {
  return `data:${part.mediaType};base64,${part.data}`;
}

/** The content of a text file; undefined for other files. */
export function fileText(part: DataPart): string | undefined {
  if (!/^(text\/|application\/(json|xml|yaml)\b)/.test(part.mediaType)) return undefined;
  return Buffer.from(part.data, "base64").toString("utf8");
}

/** The content of a text file below its name; undefined for other files. */
export function namedText(part: DataPart): string | undefined {
  const text = fileText(part);
  return text === undefined || part.name === undefined ? text : `${part.name}:\n${text}`;
}

/** The note that replaces a file which the API cannot accept, so that the model knows that something is missing. */
export function unreadable(part: Attachment): string {
  const name = part.name === undefined ? "" : ` ${part.name}`;
  return `[${part.type}${name} of type ${part.mediaType}, which cannot be shown to this model]`;
}

/** The content of an answer: null if it has only tool calls, a string if it is only text, else parts. */
export function replyContent(parts: readonly ContentPart[], toolCalls: readonly ToolCall[]): ModelReply["content"] {
  const shown = parts.filter((part) => part.type !== "text" || part.text !== "");
  if (shown.length === 0) return toolCalls.length > 0 ? null : "";
  const [only] = shown;
  return shown.length === 1 && only?.type === "text" ? only.text : shown;
}

/** Whether a message has exactly the calls with these ids, in this order. */
export function callsAre(message: AssistantMessage, ids: readonly string[]): boolean {
  const calls = message.toolCalls ?? [];
  return calls.length === ids.length && calls.every((call, index) => call.id === ids[index]);
}

/** How many system messages a request begins with. */
export function leadingSystem(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== "system");
  return first < 0 ? messages.length : first;
}

/** The text of a system message for a provider that takes them at the beginning only: a user message that says where it is from. */
export function applicationText(text: string): string {
  return text.trim() === "" ? "" : `Message from the application, not from the user:\n\n${text}`;
}
