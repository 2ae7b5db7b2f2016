import type { JsonValue } from "../../internal/json.ts";

/** Whether a value is a non-array object, as schemas are. */
export function isKeyed(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The keywords with a list of schemas. */
export const LISTS: readonly string[] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/** The keywords with schemas by name. */
export const MAPS: readonly string[] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/** The keywords with one schema; `items` of earlier drafts may have a list. */
export const SINGLES: readonly string[] = [
  ...["additionalProperties", "additionalItems", "not", "items", "if", "then", "else", "contains", "propertyNames"],
  ...["unevaluatedProperties", "unevaluatedItems", "contentSchema"],
];

/**
 * The schema to which a reference such as `#/$defs/item` points, or undefined if there is none. It follows only
 * keywords that hold schemas: values of `const`, `enum`, `default`, `examples` and unknown keywords are data.
 */
export function resolveReference(root: unknown, reference: string): JsonValue | undefined {
  if (!reference.startsWith("#")) return undefined;
  const steps = stepsOf(reference.slice(1));
  if (steps === null) return undefined;
  let found: unknown = root;
  let isSchema = true;
  for (const step of steps) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, step)) return undefined;
    if (Array.isArray(found) && !/^\d+$/.test(step)) return undefined;
    if (isSchema && !holdsSchemas(step)) return undefined;
    found = (found as Record<string, unknown>)[step];
    isSchema = !isSchema || (SINGLES.includes(step) && !Array.isArray(found));
  }
  return isSchema && (typeof found === "boolean" || isKeyed(found)) ? (found as JsonValue) : undefined;
}

function holdsSchemas(keyword: string): boolean {
  return LISTS.includes(keyword) || MAPS.includes(keyword) || SINGLES.includes(keyword);
}

function stepsOf(pointer: string): string[] | null {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) return null;
  try {
    const steps = decodeURIComponent(pointer).slice(1).split("/");
    return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  } catch {
    return null;
  }
}

const patterns = new Map<string, RegExp | null>();
const PATTERNS_KEPT_MAX = 1000;

/** Compiles a pattern; null if it is invalid. */
export function compilePattern(pattern: string): RegExp | null {
  const known = patterns.get(pattern);
  if (known !== undefined) return known;
  // Patterns are Unicode regular expressions, but many existing ones have escapes that the `u` flag refuses.
  const compiled = tryCompile(pattern, "u") ?? tryCompile(pattern, "");
  if (patterns.size >= PATTERNS_KEPT_MAX) patterns.clear();
  patterns.set(pattern, compiled);
  return compiled;
}

function tryCompile(pattern: string, flags: string): RegExp | null {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return null;
  }
}
