import { type Content, type ContentPart, SessionError } from "../../index.ts";
import type { acp } from "./acp-sdk.ts";

/**
 * What an editor says, as a message holds it. What it embeds keeps its address, and what it links to is named, for the
 * agent to look at.
 *
 * @throws {SessionError} `INVALID_OPTION` for sound, and for an image that is only linked to.
 */
export function contentOf(blocks: readonly acp.ContentBlock[]): Content {
  const parts = blocks.map(partOf);
  const [only] = parts;
  return parts.length === 1 && only?.type === "text" ? only.text : parts;
}

/** What a message says, as an editor shows it; thinking is left out. */
export function blocksOf(content: Content | null): readonly acp.ContentBlock[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : (content ?? []);
  return parts.flatMap((part): acp.ContentBlock[] => {
    if (part.type === "thinking" || (part.type === "text" && part.text === "")) return [];
    if (part.type === "text") return [part];
    const { mediaType, data, name = "unnamed" } = part;
    if (part.type === "image") return [{ type: "image", mimeType: mediaType, data }];
    return [{ type: "text", text: `[${name}: ${mediaType}]` }];
  });
}

function partOf(block: acp.ContentBlock): ContentPart {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
      return { type: "image", mediaType: block.mimeType, data: block.data };
    case "resource_link":
      return { type: "text", text: `[${block.name}](${block.uri})` };
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return { type: "text", text: `${resource.uri}:\n\n${resource.text}` };
      const mediaType = resource.mimeType ?? "application/octet-stream";
      return { type: "file", mediaType, data: resource.blob, name: resource.uri };
    }
    default:
      throw new SessionError("INVALID_OPTION", `A prompt takes text, images and files here, and no ${block.type}.`);
  }
}
