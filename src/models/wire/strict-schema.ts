import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { mapSchema } from "../../agent/schema/json-schema-definition.ts";
import { isKeyed } from "../../agent/schema/json-schema-reference.ts";

/** The JSON Schema keywords that a provider's structured output accepts. */
export interface StrictRules {
  /** The limits that it supports; others are moved into the description. */
  readonly limits?: readonly string[];
  /** Whether it accepts references, recursive ones included. */
  readonly references?: boolean;
  /** Whether it refuses optional properties. */
  readonly allRequired?: boolean;
}

const SHAPE: readonly string[] = ["type", "properties", "required", "additionalProperties", "items", "enum", "const"];
const WORDS: readonly string[] = ["title", "description"];
const REFERENCES: readonly string[] = ["$ref", "$defs", "definitions"];
const LIMITS: readonly string[] = [
  ...["minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties"],
  ...["maxProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
];
/** Keywords that do not constrain a value. */
const NOTES: readonly string[] = ["default", "examples", "$comment", "$id", "deprecated", "readOnly", "writeOnly"];

/** Rewrites a schema with a provider's keywords; null if they cannot express its shape. The result may be less strict. */
export function strictSchema(schema: JsonObject, rules: StrictRules): JsonObject | null {
  const { limits = [], references = false } = rules;
  const known = [...SHAPE, ...WORDS, "anyOf", ...limits, ...(references ? REFERENCES : [])];
  let isKnown = true;
  const strict = mapSchema(schema, ({ oneOf, ...inner }) => {
    const given: JsonObject = oneOf === undefined ? inner : { ...inner, anyOf: oneOf };
    const fields = Object.entries(given).filter(([key]) => known.includes(key));
    const told = Object.entries(given).filter(([key]) => LIMITS.includes(key) && !limits.includes(key));
    isKnown &&= Object.keys(given).every((key) => known.includes(key) || LIMITS.includes(key) || NOTES.includes(key));
    isKnown &&= hasShape(given, rules);
    return { ...Object.fromEntries(fields), ...inWords(given["description"], told) };
  });
  return isKnown ? strict : null;
}

function hasShape(schema: JsonObject, { allRequired = false }: StrictRules): boolean {
  const { type, properties, required = [], additionalProperties, items, anyOf, $ref } = schema;
  if (type === "array") return isKeyed(items);
  if (type !== "object") return (type ?? anyOf ?? $ref ?? schema["enum"] ?? schema["const"]) !== undefined;
  if (!isKeyed(properties) || additionalProperties !== false || !Object.values(properties).every(isKeyed)) return false;
  return !allRequired || Object.keys(properties).every((name) => (required as readonly JsonValue[]).includes(name));
}

/** A description that states limits which the provider does not enforce. */
function inWords(description: JsonValue | undefined, limits: readonly [string, JsonValue][]): JsonObject {
  const told = limits.filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER);
  if (told.length === 0) return {};
  const words = told.map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(", ");
  return { description: typeof description === "string" ? `${description} (${words})` : words };
}
