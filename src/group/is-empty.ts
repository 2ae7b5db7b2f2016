import { type AssistantMessage, textOf } from "../session/message.ts";

/** Whether an answer holds nothing that others could be shown: no text, no pictures, no files. */
export function isEmpty({ content }: Pick<AssistantMessage, "content">): boolean {
  const files = Array.isArray(content) && content.some(({ type }) => type === "image" || type === "file");
  return !files && textOf(content).trim() === "";
}
