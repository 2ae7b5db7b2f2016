import type { JsonObject } from "../../internal/json.ts";
import { mapSchema } from "./json-schema-definition.ts";

/** Wraps a schema in the schema of an object with the value as `value`. */
export function wrapSchema(schema: JsonObject): JsonObject {
  const value = mapSchema(schema, (inner) => {
    const { $ref } = inner;
    return typeof $ref === "string" ? { ...inner, $ref: `#/properties/value${$ref.slice(1)}` } : inner;
  });
  return { type: "object", properties: { value }, required: ["value"] };
}

/**
 * Forbids additional properties in every object schema, unless it explicitly allows them. Providers require this for
 * strict output; a value that matches the result matches the original.
 */
export function closeSchema(schema: JsonObject): JsonObject {
  let combines = false;
  const closed = mapSchema(schema, (inner) => {
    const { properties, additionalProperties, patternProperties, allOf, anyOf, oneOf, $ref } = inner;
    // Each part of a combination would otherwise refuse the properties of the others.
    combines ||= allOf !== undefined || (properties !== undefined && (anyOf ?? oneOf ?? $ref) !== undefined);
    const open = properties !== undefined && (additionalProperties ?? patternProperties) === undefined;
    return open ? { ...inner, additionalProperties: false } : inner;
  });
  return combines ? schema : closed;
}
