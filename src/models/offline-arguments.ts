import { asObject, type JsonObject, type JsonValue } from "../internal/json.ts";
import type { ToolSchema } from "../session/log/setup.ts";
import { argumentText, type Literal, unmask } from "./offline-literals.ts";
import { createSampler } from "./offline-sample.ts";
import type { OfflineStep } from "./offline-step.ts";
import { parseJsonObject } from "./parse-json-object.ts";

const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  path: ["path", "file", "file_path", "filePath", "filename", "directory"],
  content: ["content", "contents", "text"],
  old_text: ["old_text", "oldText", "old_string", "search"],
  new_text: ["new_text", "newText", "new_string", "replacement"],
  command: ["command", "cmd"],
  language: ["language"],
  code: ["code", "source"],
};
const LANGUAGES: readonly (readonly string[])[] = [
  ["python", "python3", "py"],
  ["javascript", "js", "node"],
  ["typescript", "ts"],
  ["bash", "sh", "shell"],
];

/** The arguments of a step under the names in the tool's schema. Missing required arguments get sample values. */
export function argumentsFor(tool: ToolSchema, values: Readonly<Record<string, JsonValue>>, text: string): JsonObject {
  const properties = asObject(tool.parameters.properties);
  const given: Record<string, JsonValue> = {};
  for (const [meaning, value] of Object.entries(values)) {
    const name = (SYNONYMS[meaning] ?? []).find((candidate) => Object.hasOwn(properties, candidate)) ?? meaning;
    given[name] = meaning === "language" ? languageOf(value, asObject(properties[name])) : value;
  }
  const required = Array.isArray(tool.parameters.required) ? tool.parameters.required : [];
  const sample = createSampler(text, tool.parameters);
  for (const name of required) {
    if (typeof name !== "string" || Object.hasOwn(given, name)) continue;
    given[name] = sample(properties[name]);
  }
  return given;
}

/** Parses `call NAME with …`, where the rest is a JSON object, pairs such as `city=Paris`, or one bare argument. */
export function parseToolCall(
  tools: readonly ToolSchema[],
): (sentence: string, literals: readonly Literal[]) => OfflineStep | null {
  return (sentence, literals) => {
    const groups =
      /^(?:please\s+)?(?:call|use|invoke)\s+(?:the\s+)?(?:tool\s+)?(?<name>\S+?)(?:\s+tool)?(?:(?::|\s+(?:with|on|for|to))\s*(?<rest>.+))?$/i.exec(
        sentence.trim().replace(/(?<=\w)[.!]$/, ""),
      )?.groups;
    const name = argumentText(groups?.name ?? "", literals);
    const tool = tools.find((candidate) => candidate.name === name);
    if (tool === undefined) return null;
    const values = valuesOf(groups?.rest ?? "", tool, literals);
    return { tool: name, values, said: unmask(sentence.trim(), literals) };
  };
}

function valuesOf(rest: string, tool: ToolSchema, literals: readonly Literal[]): Readonly<Record<string, JsonValue>> {
  if (rest === "") return {};
  const properties = asObject(tool.parameters.properties);
  const text = unmask(rest, literals);
  const parsed = parseJsonObject(text);
  if (parsed !== null) return parsed;
  const pairs = [...rest.matchAll(/(?<!\w)(?<name>\w+)\s*[=:]\s*(?<value>\ue000\d+\ue001|[^\s,]+)/g)];
  const named = pairs.flatMap(({ groups }) =>
    groups?.name !== undefined && Object.hasOwn(properties, groups.name)
      ? [[groups.name, typed(argumentText(groups.value ?? "", literals), properties[groups.name])] as const]
      : [],
  );
  if (named.length > 0) return Object.fromEntries(named);
  const [first] = Object.keys(properties);
  return first === undefined ? {} : { [first]: typed(argumentText(rest, literals), properties[first]) };
}

/** Converts a word to the type in the schema. */
function typed(text: string, schema: JsonValue | undefined): JsonValue {
  const { type } = asObject(schema);
  if (type === "number" || type === "integer") return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

function languageOf(value: JsonValue, schema: JsonObject): JsonValue {
  const known = Array.isArray(schema.enum) ? schema.enum : [];
  const names = LANGUAGES.find((family) => family.includes(String(value))) ?? [String(value)];
  return names.find((name) => known.includes(name)) ?? names[0] ?? value;
}
