import { copyJson, type JsonObject, NotJson } from "../../internal/json.ts";
import { show } from "../../session/errors.ts";
import type { CheckedArguments } from "../tools/tool.ts";
import { checkJsonSchema } from "./json-schema.ts";
import { findSchemaProblem } from "./json-schema-definition.ts";
import { isKeyed } from "./json-schema-reference.ts";
import type { FromJsonSchema } from "./json-schema-type.ts";
import { checkStandardSchema, isStandardSchema, jsonSchemaOf, type StandardSchema } from "./standard-schema.ts";

const OLD_ZOD = "has a schema of a zod that gives no JSON Schema; make it with zod 4.2 or later, or give JSON Schema";

/** The description of a value: JSON Schema, or a schema of any library that implements Standard Schema. */
export type ValueSchema = JsonObject | StandardSchema;

/** The type of values that match a schema: the output of a Standard Schema, or what a literal JSON Schema accepts. */
export type ValueOf<S> = S extends StandardSchema<infer _Input, infer Output> ? Output : FromJsonSchema<S>;

/** A schema as JSON Schema, or what is wrong with it, as the rest of a sentence. */
export type SchemaReading = { readonly schema: JsonObject } | { readonly problem: string; readonly cause?: unknown };

/**
 * Converts a schema to JSON Schema: a copy without its `$schema`, which some providers refuse. `name` is its name in a
 * problem, `remedy` is what to do if it provides no JSON Schema.
 */
export function readSchema(
  given: unknown,
  { name, remedy }: { readonly name: string; readonly remedy: string },
): SchemaReading {
  // Before 3.24, schemas of zod do not implement the standard and would be treated as JSON Schema.
  if (isKeyed(given) && !isStandardSchema(given) && typeof given["safeParse"] === "function") {
    return { problem: OLD_ZOD };
  }
  const read = isStandardSchema(given) ? convert(given, remedy) : { schema: given };
  if ("problem" in read) return read;
  if (!isKeyed(read.schema)) return { problem: "has no schema; give JSON Schema or a Standard Schema" };
  let copied: JsonObject;
  try {
    copied = copyJson(read.schema, name) as JsonObject;
  } catch (cause) {
    if (!(cause instanceof NotJson)) throw cause;
    return { problem: `has a schema that is not JSON: ${cause.message}`, cause };
  }
  const stray = strayKey(copied);
  if (stray !== null) return { problem: `has no schema: ${show(stray)} is no keyword of JSON Schema; ${ADVICE}` };
  const problem = findSchemaProblem(copied, { name });
  if (problem !== null) return { problem: `has a broken schema: ${problem}` };
  const { $schema: _dialect, ...schema } = copied;
  return { schema };
}

const ADVICE = 'write { type: "object", properties: { … } }, or give a Standard Schema';

/** Keywords that constrain a value; a schema without any of them accepts everything. */
const KEYWORDS: ReadonlySet<string> = new Set([
  ...["type", "properties", "items", "prefixItems", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if"],
  ...["additionalProperties", "patternProperties", "propertyNames", "required", "minProperties", "maxProperties"],
  ...["minItems", "maxItems", "uniqueItems", "contains", "minLength", "maxLength", "pattern", "format"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...[
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
  ],
  ...["readOnly", "writeOnly", "nullable"],
]);

/**
 * A key of an object that has keys but not a single keyword: probably a list of properties, as other SDKs accept it.
 */
function strayKey(schema: JsonObject): string | null {
  const keys = Object.keys(schema);
  return keys.some((key) => KEYWORDS.has(key) || key.startsWith("x-")) ? null : (keys[0] ?? null);
}

/** The output of a schema for a value, or what is wrong with the value; `name` is its name in the problem. */
export function checkValue(
  schema: ValueSchema,
  value: unknown,
  name?: string,
): CheckedArguments | Promise<CheckedArguments> {
  if (isStandardSchema(schema)) return checkStandardSchema(schema, value, name);
  const problem = checkJsonSchema(schema, value, name);
  return problem === null ? { ok: true, value } : { ok: false, problem };
}

function convert(schema: StandardSchema, remedy: string): { schema: unknown } | { problem: string; cause?: unknown } {
  let converted: unknown;
  try {
    converted = jsonSchemaOf(schema);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return { problem: `has a schema that gives no JSON Schema (${reason}); ${remedy}`, cause };
  }
  if (converted !== undefined) return { schema: converted };
  const { vendor } = schema["~standard"];
  if (vendor === "zod") return { problem: OLD_ZOD };
  return { problem: `has a schema of ${show(vendor)} that gives no JSON Schema; ${remedy}` };
}
