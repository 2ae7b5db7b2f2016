import type { JsonObject } from "../../internal/json.ts";
import { strictSchema } from "../wire/strict-schema.ts";

/**
 * A schema as the Messages API takes it, or null where a tool must take the answer: of a model from before 4.5 or of another
 * maker, and of a schema that the provider refuses, such as one with free keys or with references.
 */
export function outputFormat(id: string, output: JsonObject): JsonObject | null {
  const isNew =
    id.startsWith("claude-") && !/^claude-(3|instant|2|(opus|sonnet|haiku)-4(-[01])?([-@]\d{8}|$))/.test(id);
  const schema = isNew ? strictSchema(output, {}) : null;
  return schema === null ? null : { type: "json_schema", schema };
}
