import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content, ContentPart } from "../../session/message.ts";

/** Whether a value is a JSON object. */
export function isFields(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value if it is a string, else undefined. */
export function textIn(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Whether a value is a non-empty string, as ids and names must be. */
export function isFilled(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** A count, such as tokens; zero for a value that is none, or too large to be added up. */
export function countIn(value: JsonValue | undefined): number {
  return typeof value === "number" && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0;
}

/** Replaces a list with a single text part by the text; returns other content unchanged. */
export function textOrParts(content: Content): Content {
  if (typeof content === "string" || content.length !== 1) return content;
  const [part] = content;
  return part?.type === "text" ? part.text : content;
}

/** Parses the arguments of a call; null if the text is not a JSON object. */
export function parseArguments(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

/** The first `count` JSON objects among the first lines of a text. */
export function firstObjects(start: string, count: number): JsonObject[] {
  const objects: JsonObject[] = [];
  for (const line of start.split("\n", count * 2)) {
    try {
      const value: unknown = JSON.parse(line);
      if (isFields(value)) objects.push(value);
    } catch {
      // An invalid line does not help to detect the format.
    }
    if (objects.length === count) break;
  }
  return objects;
}

/** The form of a part's kind. Text of another form could be a prompt injection and is not put into the context. */
const KIND = /^[\w.:-]{1,60}$/;

/**
 * The text that replaces a part without a counterpart: its kind in brackets. The part itself is stored with the message and
 * restored when the session is exported to the same program.
 */
export function placeholderOf(part: JsonValue | undefined): Extract<ContentPart, { type: "text" }> {
  const kind = isFields(part) ? part.type : undefined;
  return { type: "text", text: typeof kind === "string" && KIND.test(kind) ? `[${kind}]` : "[unknown part]" };
}
