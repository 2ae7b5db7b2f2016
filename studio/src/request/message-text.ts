import { attachmentBytes, type Content, type Message } from "../../../src/session/message.ts";

/** A content as text; images and files by their kind. */
export function contentText(content: Content | null): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "thinking") return `[thinking] ${part.text}`;
      return `[${part.type} ${part.name ?? ""} ${part.mediaType}, ${attachmentBytes(part)} bytes]`;
    })
    .join("\n");
}

/** A message as text, with the names of the tools that it calls. */
export function messageText(message: Message): string {
  const said = contentText(message.content);
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return [said, ...calls.map((call) => `→ ${call.name}(${call.arguments})`)].filter((part) => part !== "").join("\n");
}
