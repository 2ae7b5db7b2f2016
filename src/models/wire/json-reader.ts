import { parseJsonObject } from "../parse-json-object.ts";

/** A JSON object whose fields have not been checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object that a value is, or an empty one: what a provider leaves out reads as undefined. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The list that a value is, or an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text that a value is, or an empty one. */
export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The number that a value is, or undefined. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The object that a text of JSON holds, or undefined for a text that holds none. */
export function parseObject(text: string): Fields | undefined {
  return parseJsonObject(text) ?? undefined;
}
