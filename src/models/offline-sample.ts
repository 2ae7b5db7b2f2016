import { checkJsonSchema } from "../agent/schema/json-schema.ts";
import { resolveReference } from "../agent/schema/json-schema-reference.ts";
import { asObject, type JsonObject, type JsonValue } from "../internal/json.ts";

const DEPTH_MAX = 10;
/** Schemas within one another can ask for more values than there is time for. */
const VALUES_MAX = 1000;
const ITEMS_MAX = 100;
const CHARACTERS_MAX = 10_000;

const FORMATS: Readonly<Record<string, string>> = {
  date: "2000-01-01",
  "date-time": "2000-01-01T00:00:00Z",
  time: "00:00:00Z",
  duration: "P1D",
  email: "a@example.com",
  uri: "https://example.com",
  ipv4: "127.0.0.1",
  ipv6: "::1",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** The plainest value that a schema allows: what the user said where that fits, else the smallest. */
export function sampleOf(schema: JsonValue | undefined, said: string, root: JsonObject): JsonValue {
  return sampleAt(schema, { said, root, made: { values: 0 } }, 0);
}

interface Sampling {
  readonly said: string;
  readonly root: JsonObject;
  readonly made: { values: number };
}

function sampleAt(schema: JsonValue | undefined, sampling: Sampling, depth: number): JsonValue {
  const { said, root, made } = sampling;
  const rules = asObject(schema);
  if (depth > DEPTH_MAX || made.values >= VALUES_MAX) return null;
  made.values += 1;
  const inner = (part: JsonValue | undefined): JsonValue => sampleAt(part, sampling, depth + 1);
  const [first] = [rules.const, rules.default, ...listOf(rules.enum), ...listOf(rules.examples)].filter(
    (value) => value !== undefined,
  );
  if (first !== undefined) return first;
  if (typeof rules.$ref === "string") return inner(resolveReference(root, rules.$ref));
  const [choice] = [...listOf(rules.anyOf), ...listOf(rules.oneOf), ...listOf(rules.allOf)];
  if (choice !== undefined) return inner(choice);
  const type = Array.isArray(rules.type) ? rules.type[0] : rules.type;
  switch (type) {
    case "number":
    case "integer":
      return firstFit(rules, numbersFor(rules, said));
    case "boolean":
      return false;
    case "null":
      return null;
    case "array":
      return Array.from({ length: Math.min(Number(rules.minItems ?? 0), ITEMS_MAX) }, () => inner(rules.items));
    case "object": {
      const properties = asObject(rules.properties);
      return Object.fromEntries(listOf(rules.required).map((name) => [String(name), inner(properties[String(name)])]));
    }
    default:
      return firstFit(rules, textsFor(rules, said));
  }
}

function numbersFor(rules: JsonObject, said: string): number[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rules;
  const [least, most] = [Number(minimum ?? exclusiveMinimum), Number(maximum ?? exclusiveMaximum)];
  const step = Number(multipleOf ?? 1);
  const multiples = [(Math.floor(least / step) + 1) * step, (Math.ceil(most / step) - 1) * step];
  const values = [0, least, most, ...multiples, (least + most) / 2].filter(Number.isFinite);
  const found = /-?\d+/.exec(said)?.[0];
  return [...(found === undefined ? [] : [Number(found)]), ...values.sort((a, b) => Math.abs(a) - Math.abs(b))];
}

function textsFor({ format, minLength }: JsonObject, said: string): string[] {
  const length = Math.min(Number(minLength ?? 0), CHARACTERS_MAX);
  const filled = ["x", "X", "0"].map((character) => character.repeat(length));
  const known = FORMATS[String(format)];
  return [...(known === undefined ? [] : [known]), said, ...filled, "x", "0", ...Object.values(FORMATS)];
}

/** The first of some values that fits, or the first of all where none does. */
function firstFit(rules: JsonObject, values: readonly JsonValue[]): JsonValue {
  return values.find((value) => checkJsonSchema(rules, value) === null) ?? values[0] ?? null;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
