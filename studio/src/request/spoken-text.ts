import type { Content } from "../../../src/session/message.ts";

/** The visible content as text: images and files by their names, and without thinking. */
export function spokenText(content: Content | null): string {
  if (content === null || typeof content === "string") return content ?? "";
  const parts = content.flatMap((part) => {
    if (part.type === "text") return [part.text];
    return part.type === "thinking" ? [] : [`[${part.type}: ${part.name ?? part.mediaType}]`];
  });
  return parts.join("\n");
}
