import type { JsonObject } from "../../internal/json.ts";
import { strictSchema } from "../wire/strict-schema.ts";

/**
 * A schema in the form of the Messages API; null if the answer must be given by a tool instead: for models before 4.5 or of
 * another maker, and for schemas that the provider refuses, such as those with arbitrary keys or references.
 */
export function outputFormat(id: string, output: JsonObject): JsonObject | null {
  const isNew =
    id.startsWith("claude-") && !/^claude-(3|instant|2|(opus|sonnet|haiku)-4(-[01])?([-@]\d{8}|$))/.test(id);
  const schema = isNew ? strictSchema(output, {}) : null;
  return schema === null ? null : { type: "json_schema", schema };
}
