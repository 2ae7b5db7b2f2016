import type { JsonObject } from "../../internal/json.ts";
import { strictSchema } from "../wire/strict-schema.ts";

const LIMITS: readonly string[] = [
  ...["minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
];

/** Whether a model can be held to a JSON Schema: those of OpenAI from before it can not. */
export function takesSchema(id: string): boolean {
  return !/^(gpt-3|gpt-4(-|$)|o1-(mini|preview))/.test(id);
}

/**
 * A schema as both APIs take it. A model is held to it where the provider can say all of it; else it is told, and what it
 * writes may not fit.
 */
export function outputFormat(output: JsonObject): JsonObject {
  const schema = strictSchema(output, { limits: LIMITS, references: true, allRequired: true });
  return { name: "answer", schema: schema ?? output, strict: schema !== null };
}
