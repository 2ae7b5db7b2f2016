import type { JsonObject } from "../../internal/json.ts";
import { strictSchema } from "../wire/strict-schema.ts";

const LIMITS: readonly string[] = [
  ...["minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
];

/** Whether a model supports structured output with a JSON Schema; OpenAI's older models do not. */
export function takesSchema(id: string): boolean {
  return !/^(gpt-3|gpt-4(-|$)|o1-(mini|preview))/.test(id);
}

/**
 * A schema in the form of both APIs. It is enforced (`strict`) if the provider supports all of it; otherwise the model only gets it as a
 * description, and its answer may not match.
 */
export function outputFormat(output: JsonObject): JsonObject {
  const schema = strictSchema(output, { limits: LIMITS, references: true, allRequired: true });
  return { name: "answer", schema: schema ?? output, strict: schema !== null };
}
