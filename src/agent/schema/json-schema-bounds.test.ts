import { describe, expect, test } from "vitest";
import { checkJsonSchema } from "./json-schema.ts";
import { findSchemaProblem } from "./json-schema-definition.ts";
import { resolveReference } from "./json-schema-reference.ts";

const SLOW = "^(a+)+$";
const SLOW_TEXT = `${"a".repeat(60)}!`;
const NO_PATTERNS = { name: "output", patterns: false };

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const named = (count: number, value: unknown): object => Object.fromEntries(many(count, (i) => [`k${i}`, value]));

describe("a reference resolves only to a schema", () => {
  const hidden = { type: "string", pattern: SLOW };
  test.for<[string, object, string]>([
    ["a const", { const: hidden }, "#/const"],
    ["a const of a property", { properties: { x: { const: hidden } } }, "#/properties/x/const"],
    ["something inside of a const", { const: { properties: { y: hidden } } }, "#/const/properties/y"],
    ["an item of an enum", { enum: [hidden] }, "#/enum/0"],
    ["a default", { default: hidden }, "#/default"],
    ["an item of examples", { examples: [hidden] }, "#/examples/0"],
    ["an unknown keyword", { "x-more": hidden }, "#/x-more"],
    ["something below an unknown keyword", { components: { schemas: { a: hidden } } }, "#/components/schemas/a"],
    ["a map of properties", { properties: hidden }, "#/properties"],
    ["a list of schemas", { anyOf: [hidden] }, "#/anyOf"],
    ["the length of a list", { anyOf: [hidden] }, "#/anyOf/length"],
    ["an encoded const", { properties: { "a/b": { const: hidden } } }, "#/properties/a~1b/const"],
    ["a const with a percent sign", { properties: { "%": { const: hidden } } }, "#/properties/%25/c%6Fnst"],
    ["an anchor", { $defs: { a: { $anchor: "here", ...hidden } } }, "#here"],
    ["another document", { $defs: { a: { $id: "https://example.com/a", ...hidden } } }, "https://example.com/a"],
    ["a pointer that is badly encoded", { $defs: { a: hidden } }, "#/$defs/%E0%A4%A"],
  ])("not to %s", ([, schema, $ref]) => {
    expect(resolveReference(schema, $ref)).toBeUndefined();
    expect(findSchemaProblem({ ...schema, allOf: [{ $ref }] }, NO_PATTERNS)).toMatch(
      /no schema in|not allowed|must be/,
    );
  });

  test.for<[string, object, string]>([
    ["$defs", { $defs: { a: hidden } }, "#/$defs/a"],
    ["definitions", { definitions: { a: hidden } }, "#/definitions/a"],
    ["a property whose name is a keyword", { properties: { const: hidden } }, "#/properties/const"],
    ["an encoded name", { $defs: { "a/b~c d": hidden } }, "#/$defs/a~1b~0c%20d"],
    ["prefixItems", { prefixItems: [true, hidden] }, "#/prefixItems/1"],
    ["a list of items", { items: [hidden] }, "#/items/0"],
    ["if", { if: hidden }, "#/if"],
    ["propertyNames", { propertyNames: hidden }, "#/propertyNames"],
    ["dependentSchemas", { dependentSchemas: { a: hidden } }, "#/dependentSchemas/a"],
    ["a nested $id", { $defs: { a: { $id: "urn:a", $defs: { b: hidden } } } }, "#/$defs/a/$defs/b"],
  ])("to what is in %s, where a pattern is found", ([, schema, $ref]) => {
    expect(resolveReference(schema, $ref)).toBe(hidden);
    expect(findSchemaProblem({ ...schema, allOf: [{ $ref }] })).toBeNull();
    expect(findSchemaProblem({ ...schema, allOf: [{ $ref }] }, NO_PATTERNS)).toContain("leave patterns out");
    expect(findSchemaProblem(schema, NO_PATTERNS)).toContain("leave patterns out");
  });

  test("patterns are found in unreferenced schemas and through a $dynamicRef", () => {
    const schema = { $dynamicRef: "#node", $defs: { a: { $dynamicAnchor: "node", patternProperties: { a: {} } } } };
    expect(findSchemaProblem(schema, NO_PATTERNS)).toBe(
      "output.$defs.a.patternProperties is not allowed here; leave patterns out",
    );
  });
});

describe("a check ends, for any schema", () => {
  // A value is held against nine million copies of one schema, unless something stops that.
  const often = (schema: unknown) => ({
    $defs: { a: schema, b: { anyOf: many(3000, () => ({ $ref: "#/$defs/a" })) } },
    anyOf: many(3000, () => ({ $ref: "#/$defs/b" })),
  });
  const long = "x".repeat(1_000_000);
  const numbers = many(20_000, (i) => i);
  test.for<[string, unknown, unknown]>([
    ["a type that a large object is not of", { type: "string" }, named(50_000, 1)],
    ["many required names", { required: many(10_000, (i) => `r${i}`) }, named(5, 1)],
    ["many required names that are there", { required: many(10_000, (i) => `k${i}`), not: {} }, named(10_000, 1)],
    ["a long const", { const: [...numbers, 1] }, [...numbers, 2]],
    ["a long text as const", { const: `${long}a` }, `${long}b`],
    ["a long enum", { enum: many(5000, (i) => ["a".repeat(100), i]) }, ["a".repeat(100), -1]],
    ["uniqueItems", { uniqueItems: true, not: {} }, numbers],
    ["characters to count", { minLength: 1_000_000, not: {} }, `${long}x`],
    ["a step that divides nothing", { multipleOf: 1e-300 }, 1e300],
    ["many names that are known", { properties: named(5000, {}), additionalProperties: false }, { a: 1, b: 2, c: 3 }],
    ["many patterns for names", { patternProperties: named(1000, {}), not: {} }, named(5000, 1)],
  ])("%s", ([, schema, value]) => {
    expect(checkJsonSchema(often(schema), value)).toMatch(/too large or too deep|could not be checked/);
  });

  test("a backtracking pattern is stopped, for a text and for a property name", () => {
    expect(checkJsonSchema({ pattern: SLOW }, SLOW_TEXT)).toContain("took longer than 500 ms");
    expect(checkJsonSchema({ patternProperties: { [SLOW]: {} } }, { [SLOW_TEXT]: 1 })).toContain("took longer");
    expect(checkJsonSchema({ $defs: { a: { pattern: SLOW } }, $ref: "#/$defs/a" }, SLOW_TEXT)).toContain("took longer");
    expect(checkJsonSchema({ pattern: SLOW }, "aaa")).toBeNull();
  });

  test("the problem names only a few of many matching branches", () => {
    expect(checkJsonSchema({ oneOf: many(9000, () => true) }, 1)).toBe(
      "arguments must match exactly one of 9000 forms, but matches number 1 and 2 and 3 and 4 and 5 and 8995 more.",
    );
  });

  test("a schema of more than 10,000 schemas is refused when it is defined", () => {
    for (const schema of [{ anyOf: many(200_000, () => true) }, { properties: named(10_001, {}) }]) {
      expect(findSchemaProblem(schema)).toBe("parameters holds more than 10000 schemas");
    }
    expect(findSchemaProblem({ properties: named(9000, {}) })).toBeNull();
  });
});
