import type { ToolContent } from "../../agent/tools/tool.ts";
import type { ContentPart } from "../../session/message.ts";

/** Maximum base64 characters of images and files in one result; more would not fit into an entry. */
const DATA_CHARACTERS_MAX: number = 5 * 1024 * 1024;

interface McpItem {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: { readonly uri?: unknown; readonly mimeType?: unknown; text?: unknown; blob?: unknown };
}

/**
 * A server's answer to a call as content for the model; unknown parts become JSON.
 *
 * Servers send structured content a second time as text, for clients without support for it. The model gets only one of the
 * two: the structured content, which is complete, or, after a failure, the texts, which describe it.
 */
export function toolResult(answer: Readonly<Record<string, unknown>>): ToolContent {
  const items = Array.isArray(answer.content) ? (answer.content as readonly unknown[]) : [];
  const failed = answer.isError === true;
  const structured = answer.structuredContent ?? (items.length === 0 ? answer.toolResult : undefined);
  const counts = structured !== undefined && !(failed && items.some(isText));
  const parts = counts
    ? [structuredPart(structured), ...items.filter((item) => !isText(item)).map(mcpPart)]
    : items.map(mcpPart);
  const fitting = fit(parts);
  const text = fitting.every((part) => part.type === "text") ? fitting.map((part) => part.text).join("\n") : null;
  // Some providers refuse an empty result.
  const silence = failed ? "The tool failed and does not say why." : '{"ok":true}';
  const content = text === "" ? silence : (text ?? fitting);
  return failed ? { content, isError: true } : { content };
}

/** Converts a content block of MCP, or of a similar protocol, to a content part; unknown blocks become JSON. */
export function mcpPart(item: unknown): ContentPart {
  const { type, text, data, mimeType, uri, name, resource } = (item ?? {}) as McpItem;
  if (type === "text" && typeof text === "string") return { type: "text", text };
  if ((type === "image" || type === "audio") && typeof data === "string") return dataPart(data, mimeType);
  if (type === "resource" && typeof resource?.text === "string") {
    return { type: "text", text: `${typeof resource.uri === "string" ? `${resource.uri}:\n\n` : ""}${resource.text}` };
  }
  if (type === "resource" && typeof resource?.blob === "string") {
    return dataPart(resource.blob, resource.mimeType, resource.uri);
  }
  if (type === "resource_link" && typeof uri === "string") {
    return { type: "text", text: typeof name === "string" && name !== "" ? `${name}: ${uri}` : uri };
  }
  return asText(item);
}

function dataPart(data: string, mimeType: unknown, name?: unknown): ContentPart {
  const mediaType = typeof mimeType === "string" && mimeType !== "" ? mimeType : "application/octet-stream";
  const type = mediaType.startsWith("image/") ? "image" : "file";
  return { type, mediaType, data, ...(typeof name === "string" ? { name } : {}) };
}

function asText(value: unknown): ContentPart {
  return { type: "text", text: JSON.stringify(value) ?? "" };
}

function isText(item: unknown): boolean {
  const { type, text } = (item ?? {}) as McpItem;
  return type === "text" && typeof text === "string";
}

/** Structured content as JSON; a single text field is unwrapped, because some servers wrap every text: `{"result":"…"}`. */
function structuredPart(structured: unknown): ContentPart {
  const [only, ...others] = typeof structured === "object" && structured !== null ? Object.values(structured) : [];
  return typeof only === "string" && others.length === 0 ? { type: "text", text: only } : asText(structured);
}

function fit(parts: readonly ContentPart[]): ContentPart[] {
  let left = DATA_CHARACTERS_MAX;
  return parts.map((part) => {
    if (!("data" in part)) return part;
    if (part.data.length > left) {
      return { type: "text", text: `[${part.mediaType} of ${part.data.length} base64 characters was left out.]` };
    }
    left -= part.data.length;
    return part;
  });
}
