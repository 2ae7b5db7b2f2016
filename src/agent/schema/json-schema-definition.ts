import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { TYPE_NAMES } from "./json-schema-keywords.ts";
import { type Position, showPosition, showValue } from "./json-schema-problem.ts";
import { compilePattern, isKeyed, LISTS, MAPS, resolveReference, SINGLES } from "./json-schema-reference.ts";

interface Item {
  readonly schema: unknown;
  readonly at: Position;
}

/** The keywords whose schemas describe parts of the value; `mapSchema` rewrites these. */
const MAPPED: readonly string[] = ["$defs", "definitions", "properties", "patternProperties"];
const MAPPED_SINGLES: readonly string[] = ["additionalProperties", "additionalItems", "not", "items"];
/** How many subschemas a schema may have; a check visits each at least once. */
const SCHEMAS_MAX = 10_000;
const LIMITS: readonly string[] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const SIZES: readonly string[] = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];

/** Options for examining a schema. */
export interface DefinitionOptions {
  /** The name of the schema in a problem (default `parameters`). */
  readonly name?: string;
  /**
   * Whether patterns are allowed (default: yes). An untrusted schema must not have any: a pattern can backtrack for
   * hours.
   */
  readonly patterns?: boolean;
}

/**
 * Describes what is wrong with a JSON Schema itself, in the supported keywords; null if it is valid. Called before a model sees the schema.
 */
export function findSchemaProblem(
  root: unknown,
  { name = "parameters", patterns = true }: DefinitionOptions = {},
): string | null {
  const waiting: Item[] = [{ schema: root, at: { parent: null, key: name } }];
  const seen = new Set<unknown>();
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    const { schema, at } = item;
    if (typeof schema === "boolean" || seen.has(schema)) continue;
    seen.add(schema);
    if (!isKeyed(schema)) return `${showPosition(at)} must be a schema, got ${showValue(schema)}`;
    for (const [key, value] of Object.entries(schema)) {
      const here = { parent: at, key };
      if (!patterns && (key === "pattern" || key === "patternProperties")) {
        return `${showPosition(here)} is not allowed here; leave patterns out`;
      }
      const problem = checkKeyword(key, value);
      if (problem !== null) return `${showPosition(here)} ${problem}`;
      addSchemas(waiting, key, value, here);
      if (seen.size + waiting.length > SCHEMAS_MAX) return `${name} holds more than ${SCHEMAS_MAX} schemas`;
      if (key === "$ref" && resolveReference(root, value as string) === undefined) {
        return `${showPosition(here)} points at ${showValue(value)}, which is no schema in this schema`;
      }
    }
  }
  return hasCircle(root, seen) ? `${name} has a $ref that leads back to itself without going into the value` : null;
}

/** A JSON Schema in which each schema is replaced by the result of `change`, innermost first. */
export function mapSchema(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const mapped = (value: JsonValue): JsonValue => (isKeyed(value) ? mapSchema(value as JsonObject, change) : value);
  const inner = Object.entries(schema).map(([key, value]): [string, JsonValue] => {
    if (MAPPED.includes(key)) {
      const entries = Object.entries(value as JsonObject).map(([property, each]) => [property, mapped(each)]);
      return [key, Object.fromEntries(entries)];
    }
    if (!LISTS.includes(key) && !MAPPED_SINGLES.includes(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(mapped) : mapped(value)];
  });
  return change(Object.fromEntries(inner));
}

/** Adds the schemas of a keyword, but no more than needed to detect that there are too many. */
function addSchemas(waiting: Item[], key: string, value: unknown, at: Position): void {
  const isList = LISTS.includes(key) || (key === "items" && Array.isArray(value));
  if (!isList && !MAPS.includes(key)) {
    if (SINGLES.includes(key)) waiting.push({ schema: value, at });
    return;
  }
  for (const [child, schema] of Object.entries(value as object)) {
    if (waiting.length > SCHEMAS_MAX) return;
    waiting.push({ schema, at: { parent: at, key: isList ? Number(child) : child } });
  }
}

function checkKeyword(key: string, value: unknown): string | null {
  const must = (fits: boolean, what: string): string | null =>
    fits ? null : `must be ${what}, got ${showValue(value)}`;
  if (LISTS.includes(key)) return must(Array.isArray(value) && value.length > 0, "a list of schemas");
  if (MAPS.includes(key)) return must(isKeyed(value), "an object of schemas") ?? checkPatterns(key, value as object);
  if (LIMITS.includes(key)) {
    const positive = key !== "multipleOf" || (value as number) > 0;
    return must(typeof value === "number" && positive, positive ? "a number" : "a number above 0");
  }
  if (SIZES.includes(key)) return must(Number.isInteger(value) && (value as number) >= 0, "a whole number from 0");
  switch (key) {
    case "type":
      return must(isTypeName(value), `one of ${TYPE_NAMES.join(", ")}, or a list of these`);
    case "required":
      return must(Array.isArray(value) && value.every((item) => typeof item === "string"), "a list of property names");
    case "enum":
      return must(Array.isArray(value) && value.length > 0, "a list of values");
    case "uniqueItems":
      return must(typeof value === "boolean", "true or false");
    case "pattern":
      return must(typeof value === "string" && compilePattern(value) !== null, "a regular expression");
    case "$ref":
      return must(typeof value === "string", "a text such as #/$defs/item");
    default:
      return null;
  }
}

function checkPatterns(key: string, value: object): string | null {
  if (key !== "patternProperties") return null;
  const broken = Object.keys(value).find((pattern) => compilePattern(pattern) === null);
  return broken === undefined ? null : `must have regular expressions as keys, got ${showValue(broken)}`;
}

function isTypeName(value: unknown): boolean {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return names.length > 0 && names.every((name) => typeof name === "string" && TYPE_NAMES.includes(name));
}

/** Whether a schema refers to itself through references and unions only, without descending into the value. */
function hasCircle(root: unknown, schemas: ReadonlySet<unknown>): boolean {
  const finished = new Set<unknown>();
  const open = new Set<unknown>();
  for (const start of schemas) {
    const stack: unknown[] = [start];
    while (stack.length > 0) {
      const schema = stack.at(-1);
      if (finished.has(schema) || open.has(schema)) {
        // The second visit happens after all schemas below it.
        open.delete(schema);
        finished.add(schema);
        stack.pop();
        continue;
      }
      open.add(schema);
      const next = sameValueSchemas(root, schema);
      if (next.some((child) => open.has(child))) return true;
      for (const child of next) if (!finished.has(child)) stack.push(child);
    }
  }
  return false;
}

function sameValueSchemas(root: unknown, schema: unknown): object[] {
  if (!isKeyed(schema)) return [];
  const { $ref, allOf, anyOf, oneOf, not } = schema;
  const next = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const target = typeof $ref === "string" ? resolveReference(root, $ref) : undefined;
  return [...next, not, target].filter((child) => isKeyed(child));
}
