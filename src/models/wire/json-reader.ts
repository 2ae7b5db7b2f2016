import { parseJsonObject } from "../parse-json-object.ts";

/** A JSON object whose fields have not been checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value if it is an object, else an empty one, so that missing fields read as undefined. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is a string, else an empty string. */
export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The value if it is a finite number, else undefined. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Parses a text as a JSON object; undefined if it is not one. */
export function parseObject(text: string): Fields | undefined {
  return parseJsonObject(text) ?? undefined;
}
