import type { Content, ContentPart } from "../../../../src/session/message.ts";

/** The parts of a content. */
export function partsOf(content: Content | null): readonly ContentPart[] {
  if (content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The text of a content, without images, files and thinking. */
export function textOf(content: Content | null): string {
  return partsOf(content)
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("\n");
}

/** The content with another text; images and files are kept. */
export function withText(content: Content, text: string): Content {
  const rest = partsOf(content).filter(({ type }) => type === "image" || type === "file");
  return rest.length === 0 ? text : [{ type: "text", text }, ...rest];
}
