import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { ToolSchema } from "../agent/model/model.ts";
import { argumentText, type Literal, unmask } from "./offline-literals.ts";
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
const SAMPLE_DEPTH_MAX = 10;

/** The arguments of a step in the words of the tool's own schema; what the schema demands beyond them is made up. */
export function argumentsFor(tool: ToolSchema, values: Readonly<Record<string, JsonValue>>, text: string): JsonObject {
  const properties = asObject(tool.parameters.properties);
  const given: Record<string, JsonValue> = {};
  for (const [meaning, value] of Object.entries(values)) {
    const name = (SYNONYMS[meaning] ?? []).find((candidate) => Object.hasOwn(properties, candidate)) ?? meaning;
    given[name] = meaning === "language" ? languageOf(value, asObject(properties[name])) : value;
  }
  const required = Array.isArray(tool.parameters.required) ? tool.parameters.required : [];
  for (const name of required) {
    if (typeof name !== "string" || Object.hasOwn(given, name)) continue;
    given[name] = sampleOf(properties[name], text, tool.parameters, 0);
  }
  return given;
}

/** Understands `call NAME with …`, where the rest is a JSON object, pairs such as `city=Paris`, or one bare argument. */
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
  const pairs = [...rest.matchAll(/(?<name>\w+)\s*[=:]\s*(?<value>\ue000\d+\ue001|[^\s,]+)/g)];
  const named = pairs.flatMap(({ groups }) =>
    groups?.name !== undefined && Object.hasOwn(properties, groups.name)
      ? [[groups.name, typed(argumentText(groups.value ?? "", literals), properties[groups.name])] as const]
      : [],
  );
  if (named.length > 0) return Object.fromEntries(named);
  const [first] = Object.keys(properties);
  return first === undefined ? {} : { [first]: typed(argumentText(rest, literals), properties[first]) };
}

/** A word as the type that the schema asks for. */
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

/** The plainest value that a schema allows; a text is what the user said. */
function sampleOf(schema: JsonValue | undefined, text: string, root: JsonObject, depth: number): JsonValue {
  const rules = asObject(schema);
  if (depth > SAMPLE_DEPTH_MAX) return null;
  const [first] = [rules.const, rules.default, ...listOf(rules.enum), ...listOf(rules.examples)].filter(
    (value) => value !== undefined,
  );
  if (first !== undefined) return first;
  if (typeof rules.$ref === "string") return sampleOf(referred(rules.$ref, root), text, root, depth + 1);
  const [choice] = [...listOf(rules.anyOf), ...listOf(rules.oneOf), ...listOf(rules.allOf)];
  if (choice !== undefined) return sampleOf(choice, text, root, depth + 1);
  const type = Array.isArray(rules.type) ? rules.type[0] : rules.type;
  switch (type) {
    case "number":
    case "integer":
      return Number(/-?\d+/.exec(text)?.[0] ?? rules.minimum ?? 0);
    case "boolean":
      return false;
    case "null":
      return null;
    case "array":
      return Array.from({ length: Math.min(Number(rules.minItems ?? 0), 100) }, () =>
        sampleOf(rules.items, text, root, depth + 1),
      );
    case "object":
      return Object.fromEntries(
        listOf(rules.required).map((name) => [
          String(name),
          sampleOf(asObject(rules.properties)[String(name)], text, root, depth + 1),
        ]),
      );
    default:
      return text;
  }
}

function referred(reference: string, root: JsonObject): JsonValue | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let value: JsonValue | undefined = root;
  for (const key of reference.slice(2).split("/")) value = asObject(value)[key];
  return value;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
