import type { Content, ContentPart } from "../../../../src/session/message.ts";

/** What a content says, as parts. */
export function partsOf(content: Content | null): readonly ContentPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The text of a content: nothing of images, files or thinking. */
export function textOf(content: Content | null): string {
  return partsOf(content)
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("\n");
}

/** The same content with another text; its images and files stay. */
export function withText(content: Content, text: string): Content {
  const rest = partsOf(content).filter(({ type }) => type === "image" || type === "file");
  return rest.length === 0 ? text : [{ type: "text", text }, ...rest];
}
