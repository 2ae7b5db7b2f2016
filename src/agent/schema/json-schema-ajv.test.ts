import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkJsonSchema } from "./json-schema.ts";
import { findSchemaProblem } from "./json-schema-definition.ts";

// A small world of keys and values, so that random schemas and random values often have to do with each other.
const KEYS = ["a", "b", "isPrototypeOf", "x y"];
const key = fc.constantFrom(...KEYS);
const scalar = fc.oneof(
  fc.integer({ min: -4, max: 6 }),
  fc.constantFrom(0.5, 1.25, -2.5, 1e9),
  fc.constantFrom("", "a", "ab", "abc", "😀", "😀b", "\ud83d", "A1"),
  fc.boolean(),
  fc.constant(null),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

const typeName = fc.constantFrom("string", "number", "integer", "boolean", "null", "array", "object");
const size = fc.integer({ min: 0, max: 3 });
const limit = fc.oneof(fc.integer({ min: -3, max: 5 }), fc.constantFrom(0.5, 1.25));
const pattern = fc.constantFrom("^a", "b$", "^[A-Z][0-9]$", "^.$", "o", " ");
const { schema } = fc.letrec((tie) => {
  const list = fc.array(tie("schema"), { minLength: 1, maxLength: 3 });
  const keywords = {
    type: fc.oneof(typeName, fc.uniqueArray(typeName, { minLength: 1, maxLength: 3 })),
    properties: fc.dictionary(key, tie("schema"), { maxKeys: 3, noNullPrototype: true }),
    patternProperties: fc.dictionary(pattern, tie("schema"), { maxKeys: 2, noNullPrototype: true }),
    additionalProperties: tie("schema"),
    required: fc.uniqueArray(key, { maxLength: 2 }),
    minProperties: size,
    maxProperties: size,
    items: tie("schema"),
    prefixItems: list,
    minItems: size,
    maxItems: size,
    uniqueItems: fc.boolean(),
    enum: fc.uniqueArray(value as fc.Arbitrary<unknown>, { minLength: 1, maxLength: 3, comparator: "SameValue" }),
    const: value as fc.Arbitrary<unknown>,
    minimum: limit,
    maximum: limit,
    exclusiveMinimum: limit,
    exclusiveMaximum: limit,
    multipleOf: fc.constantFrom(1, 2, 3, 0.5, 0.25),
    minLength: size,
    maxLength: size,
    pattern,
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: tie("schema"),
    $ref: fc.constantFrom("#/$defs/one", "#/$defs/two"),
    format: fc.constantFrom("date", "email"),
    title: fc.constant("ignored"),
  };
  const names = Object.keys(keywords) as (keyof typeof keywords)[];
  const chosen = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 });
  return {
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      { weight: 1, arbitrary: fc.boolean() },
      { weight: 3, arbitrary: fc.record({ type: typeName }) },
      {
        weight: 8,
        arbitrary: chosen.chain((few) =>
          fc.record(Object.fromEntries(few.map((name) => [name, keywords[name] as fc.Arbitrary<unknown>])), {
            noNullPrototype: true,
          }),
        ),
      },
    ),
  };
});

/** A schema with two definitions that it, and they, may refer to. */
const wholeSchema = fc
  .record({ whole: schema, one: schema, two: schema })
  .map(({ whole, one, two }): Record<string, unknown> => ({ $defs: { one, two }, allOf: [whole] }));

test("agrees with another implementation on random schemas and values", () => {
  const verdicts = { fits: 0, not: 0, recursive: 0 };
  const property = fc.property(wholeSchema, fc.array(value, { minLength: 8, maxLength: 8 }), (whole, values) => {
    // A reference that leads to itself about the same value has no meaning, and the other one overflows on it.
    const problem = findSchemaProblem(whole);
    if (problem !== null) {
      expect(problem).toContain("leads back to itself");
      return;
    }
    const validate = compile(whole);
    for (const item of values) {
      const said = checkJsonSchema(whole, item);
      expect(said === null, `${said} ${JSON.stringify(item)}`).toBe(validate(item));
      verdicts[said === null ? "fits" : "not"] += 1;
    }
    if (JSON.stringify(whole.$defs).includes("$ref")) verdicts.recursive += 1;
  });
  fc.assert(property, { numRuns: 700 });
  // Random schemas that accept everything, or nothing, would show little.
  expect(verdicts.fits).toBeGreaterThan(500);
  expect(verdicts.not).toBeGreaterThan(500);
  expect(verdicts.recursive).toBeGreaterThan(10);
});

function compile(whole: Record<string, unknown>): (value: unknown) => boolean {
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    validateSchema: false,
    ownProperties: true,
    logger: false,
  });
  // Its bookkeeping for keywords that are not in the subset breaks on some of these schemas.
  ajv.opts.unevaluated = false;
  return ajv.compile(whole);
}
