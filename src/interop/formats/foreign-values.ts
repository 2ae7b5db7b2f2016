import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content } from "../../session/message.ts";

/** Whether a value is a JSON object. */
export function isFields(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text where it is one; undefined for all else. */
export function textIn(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Whether a value is a text that says something, as ids and names must. */
export function isFilled(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** One text part is a text; other content stays as it is. */
export function textOrParts(content: Content): Content {
  if (typeof content === "string" || content.length !== 1) return content;
  const [part] = content;
  return part?.type === "text" ? part.text : content;
}

/** The arguments of a call as the object that they spell; null where they spell none. */
export function parseArguments(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

/** The objects of the first whole lines of a text. */
export function firstObjects(start: string, count: number): JsonObject[] {
  const objects: JsonObject[] = [];
  for (const line of start.split("\n", count * 2)) {
    try {
      const value: unknown = JSON.parse(line);
      if (isFields(value)) objects.push(value);
    } catch {
      // A broken line says nothing about the format.
    }
    if (objects.length === count) break;
  }
  return objects;
}
