import type { JsonObject } from "../../internal/json.ts";
import { mapSchema } from "./json-schema-definition.ts";

/** The schema of an object that holds a value of another schema as `value`. */
export function wrapSchema(schema: JsonObject): JsonObject {
  const value = mapSchema(schema, (inner) => {
    const { $ref } = inner;
    return typeof $ref === "string" ? { ...inner, $ref: `#/properties/value${$ref.slice(1)}` } : inner;
  });
  return { type: "object", properties: { value }, required: ["value"] };
}

/**
 * A schema whose objects have no properties but those it names, unless it says that they may. Providers that hold a model
 * to a schema demand it; what fits here fits the schema itself.
 */
export function closeSchema(schema: JsonObject): JsonObject {
  let combines = false;
  const closed = mapSchema(schema, (inner) => {
    const { properties, additionalProperties, patternProperties, allOf, anyOf, oneOf, $ref } = inner;
    // Each part of a combination would refuse the properties of the others.
    combines ||= allOf !== undefined || (properties !== undefined && (anyOf ?? oneOf ?? $ref) !== undefined);
    const open = properties !== undefined && (additionalProperties ?? patternProperties) === undefined;
    return open ? { ...inner, additionalProperties: false } : inner;
  });
  return combines ? schema : closed;
}
