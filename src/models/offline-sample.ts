import { checkJsonSchema } from "../agent/schema/json-schema.ts";
import { stepsToRead } from "../agent/schema/json-schema-keywords.ts";
import { resolveReference } from "../agent/schema/json-schema-reference.ts";
import { asObject, type JsonObject, type JsonValue } from "../internal/json.ts";

const DEPTH_MAX = 10;
/** Nested schemas can ask for exponentially many values. */
const VALUES_MAX = 1000;
const ITEMS_MAX = 100;
/** Total time for checking values: a single `pattern` can use up the whole time limit of one check. */
const CHECKS_MS_MAX = 250;
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

/**
 * Creates a function that makes sample values for schemas: the user's text if it fits, else the smallest value. Size and time
 * are limited over all values of one sampler.
 */
export function createSampler(said: string, root: JsonObject): (schema: JsonValue | undefined) => JsonValue {
  const sampling = { said, root, made: { values: 0 }, endsMs: performance.now() + CHECKS_MS_MAX };
  return (schema) => sampleAt(schema, sampling, 0);
}

interface Sampling {
  readonly said: string;
  readonly root: JsonObject;
  readonly made: { values: number };
  /** After this time, values are no longer checked. */
  readonly endsMs: number;
}

function sampleAt(schema: JsonValue | undefined, sampling: Sampling, depth: number): JsonValue {
  const { said, root, made } = sampling;
  const rules = asObject(schema);
  if (depth > DEPTH_MAX || made.values >= VALUES_MAX) return null;
  const inner = (part: JsonValue | undefined): JsonValue => sampleAt(part, sampling, depth + 1);
  const keep = (value: JsonValue): JsonValue => {
    made.values += stepsToRead(value);
    return value;
  };
  const first = [rules.const, rules.default, listOf(rules.enum)[0], listOf(rules.examples)[0]].find(
    (value) => value !== undefined,
  );
  if (first !== undefined) return keep(first);
  made.values += 1;
  if (typeof rules.$ref === "string") return inner(resolveReference(root, rules.$ref));
  const choice = listOf(rules.anyOf)[0] ?? listOf(rules.oneOf)[0] ?? listOf(rules.allOf)[0];
  if (choice !== undefined) return inner(choice);
  const type = Array.isArray(rules.type) ? rules.type[0] : rules.type;
  switch (type) {
    case "number":
    case "integer":
      return firstFit(rules, numbersFor(rules, said), sampling);
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
      return keep(firstFit(rules, textsFor(rules, said), sampling));
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

/** The first value that fits the schema; if none does, the first value. */
function firstFit(rules: JsonObject, values: readonly JsonValue[], { endsMs }: Sampling): JsonValue {
  const fits = (value: JsonValue): boolean => performance.now() > endsMs || checkJsonSchema(rules, value) === null;
  return values.find(fits) ?? values[0] ?? null;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
