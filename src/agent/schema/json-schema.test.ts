import { describe, expect, test } from "vitest";
import { checkJsonSchema } from "./json-schema.ts";

const order = {
  type: "object",
  properties: {
    number: { type: "string", pattern: "^[0-9]+$" },
    note: { type: ["string", "null"], maxLength: 3 },
    state: { enum: ["open", "sent"] },
    items: {
      type: "array",
      minItems: 1,
      uniqueItems: true,
      items: { type: "object", properties: { count: { type: "integer", minimum: 1 } }, required: ["count"] },
    },
  },
  required: ["number"],
  additionalProperties: false,
};

describe("the problem with arguments that a model gets", () => {
  // biome-ignore format: a table reads best with one case to a line.
  const cases: [schema: unknown, value: unknown, problem: string][] = [
    [order, { number: "1", items: [{ count: 1 }, { count: 2 }, { count: "3" }] }, 'arguments.items[2].count must be an integer, got "3".'],
    [order, {}, "arguments.number is required but missing."],
    [order, "all", 'arguments must be an object, got "all".'],
    [order, { number: "x" }, 'arguments.number must match the pattern ^[0-9]+$, got "x".'],
    [order, { number: "1", color: 1 }, "arguments.color is not a known property; known are number, note, state, items."],
    [order, { number: "1", "two words": 1 }, 'arguments["two words"] is not a known property; known are number, note, state, items.'],
    [order, { number: "1", note: 5 }, "arguments.note must be a string or null, got 5."],
    [order, { number: "1", note: "long" }, 'arguments.note must have at most 3 characters, got "long".'],
    [order, { number: "1", state: "lost" }, 'arguments.state must be "open" or "sent", got "lost".'],
    [order, { number: "1", items: [] }, "arguments.items must have at least 1 item, got 0."],
    [order, { number: "1", items: [{ count: 1 }, { count: 1 }] }, "arguments.items must have no item twice, but repeats an object with count at [1]."],
    [order, { number: 1, items: [{}, { count: 0 }] }, "arguments.number must be a string, got 1; arguments.items[0].count is required but missing; arguments.items[1].count must be at least 1, got 0."],
    [{ const: 4 }, 5, "arguments must be 4, got 5."],
    [{ exclusiveMinimum: 0 }, 0, "arguments must be greater than 0, got 0."],
    [{ exclusiveMaximum: 9 }, 9, "arguments must be less than 9, got 9."],
    [{ maximum: 9 }, 10, "arguments must be at most 9, got 10."],
    [{ multipleOf: 3 }, 4, "arguments must be a multiple of 3, got 4."],
    [{ minProperties: 2 }, { a: 1 }, "arguments must have at least 2 properties, got 1."],
    [{ properties: { a: false } }, { a: 1 }, "arguments.a is not allowed."],
    [{ not: { type: "null" } }, null, "arguments must not be what the schema excludes, got null."],
    [{ anyOf: [{ type: "string" }, { type: "integer" }] }, [1], "arguments must be a string or an integer, got an array of 1 item."],
    [{ anyOf: [{ type: "object", required: ["a"] }, { type: "null" }] }, {}, "arguments.a is required but missing."],
    [{ oneOf: [{ minimum: 1 }, { maximum: 5 }] }, 3, "arguments must match exactly one of 2 forms, but matches number 1 and 2."],
    [{ anyOf: [{ minimum: 9 }, { maximum: 1 }] }, 5, "arguments must match one of 2 forms, which say: (1) arguments must be at least 9, got 5, (2) arguments must be at most 1, got 5."],
  ];

  test.for(cases)("%#: names the position, the expected and the actual value", ([schema, value, problem]) => {
    expect(checkJsonSchema(schema, value)).toBe(problem);
  });

  test("refers to the branch of a union that its tag selects", () => {
    const circle = {
      properties: { kind: { const: "circle" }, radius: { type: "number" } },
      required: ["kind", "radius"],
    };
    const square = { properties: { kind: { const: "square" }, side: { type: "number" } }, required: ["kind", "side"] };
    expect(checkJsonSchema({ oneOf: [circle, square] }, { kind: "square" })).toBe(
      "arguments.side is required but missing.",
    );
  });

  test("lists at most five problems, with shortened values", () => {
    const said = checkJsonSchema({ items: { type: "integer" } }, Array(100).fill("x".repeat(1000))) ?? "";
    expect(said.split("; ")).toHaveLength(5);
    expect(said.length).toBeLessThan(700);
  });

  test("stays short for unions within unions", () => {
    let schema: unknown = { minimum: 9 };
    for (let depth = 0; depth < 12; depth++) schema = { anyOf: [schema, schema, { maximum: -9 }] };
    expect(checkJsonSchema(schema, 5)).toBe(
      "arguments must match one of 3 forms, which say: (1) arguments must match one of 3 forms, " +
        "(2) arguments must match one of 3 forms, (3) arguments must be at most -9, got 5.",
    );
  });

  test("shortens a position that is deep and keys that are long", () => {
    let value: unknown = "no number";
    for (let depth = 0; depth < 150; depth++) value = { ["k".repeat(300)]: value };
    const said = checkJsonSchema({ additionalProperties: { $ref: "#" }, type: ["object", "number"] }, value) ?? "";
    expect(said).toContain('must be an object or a number, got "no number".');
    expect(said.length).toBeLessThan(300);
  });
});

describe("numbers and texts", () => {
  test("19.99 is a multiple of 0.01, and 19.995 is not", () => {
    expect(checkJsonSchema({ multipleOf: 0.01 }, 19.99)).toBeNull();
    expect(checkJsonSchema({ multipleOf: 0.01 }, 19.995)).not.toBeNull();
  });

  test("1.0 is an integer, and 1.5 is not", () => {
    expect(checkJsonSchema({ type: "integer" }, 1.0)).toBeNull();
    expect(checkJsonSchema({ type: "integer" }, 1.5)).not.toBeNull();
  });

  test("lengths are counted in characters, not in UTF-16 units", () => {
    expect(checkJsonSchema({ maxLength: 2 }, "😀😀")).toBeNull();
    expect(checkJsonSchema({ minLength: 3 }, "😀😀")).not.toBeNull();
  });

  test("a pattern with syntax that the u flag refuses still works", () => {
    expect(checkJsonSchema({ pattern: "^a\\-b$" }, "a-b")).toBeNull();
    expect(checkJsonSchema({ pattern: "^a\\-b$" }, "ab")).not.toBeNull();
  });
});

describe("objects and lists", () => {
  test("a key that matches a pattern property is known, and has that property's schema", () => {
    const schema = { patternProperties: { "^x-": { type: "string" } }, additionalProperties: false };
    expect(checkJsonSchema(schema, { "x-a": "text" })).toBeNull();
    expect(checkJsonSchema(schema, { "x-a": 1 })).toBe('arguments["x-a"] must be a string, got 1.');
    expect(checkJsonSchema(schema, { y: "text" })).toBe("arguments.y is not a known property.");
  });

  test("items are equal regardless of the order of their keys, and a number does not equal its text", () => {
    const unique = { uniqueItems: true };
    expect(
      checkJsonSchema(unique, [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ]),
    ).toContain("must have no item twice");
    expect(checkJsonSchema(unique, [1, "1", [1], { 1: 1 }, null, false, 0])).toBeNull();
  });
});

describe("a schema written for an earlier draft", () => {
  test("may use the older form of tuples", () => {
    const pair = { type: "array", items: [{ type: "string" }, { type: "number" }], additionalItems: false };
    expect(checkJsonSchema(pair, ["a", 1])).toBeNull();
    expect(checkJsonSchema(pair, ["a", "b"])).toBe('arguments[1] must be a number, got "b".');
    expect(checkJsonSchema(pair, ["a", 1, 2])).toBe("arguments[2] is not allowed.");
  });

  test("may use `definitions`, also with escaped names", () => {
    const schema = { definitions: { "a/b~c d": { type: "string" } }, $ref: "#/definitions/a~1b~0c%20d" };
    expect(checkJsonSchema(schema, "x")).toBeNull();
    expect(checkJsonSchema(schema, 1)).toBe("arguments must be a string, got 1.");
  });
});

describe("hostile values and schemas", () => {
  test("a value 10,000 levels deep is refused before any recursion", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`);
    expect(checkJsonSchema({ properties: { a: { $ref: "#" } } }, deep)).toContain("nests deeper than 200 levels");
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    expect(checkJsonSchema({}, cyclic)).toContain("nests deeper than 200 levels");
  });

  test("a value as deep as allowed is checked to its end through references and unions", () => {
    const list = {
      anyOf: [{ type: "null" }, { type: "object", properties: { next: { $ref: "#" }, value: { type: "number" } } }],
    };
    const chain = (end: unknown) => {
      let value: unknown = { value: end };
      for (let depth = 1; depth < 199; depth++) value = { next: value };
      return value;
    };
    expect(checkJsonSchema(list, chain(1))).toBeNull();
    expect(checkJsonSchema(list, chain("one"))).toContain('must be a number, got "one"');
  });

  test("inherited properties are neither present nor known keys", () => {
    const schema = { type: "object", properties: { a: {} }, required: ["toString"], additionalProperties: false };
    expect(checkJsonSchema(schema, {})).toBe("arguments.toString is required but missing.");
    expect(checkJsonSchema(schema, { toString: 1 })).toContain("arguments.toString is not a known property");
    expect(checkJsonSchema({}, JSON.parse('{"__proto__": 1}'))).toBe(
      "arguments.__proto__ is a key that is not allowed.",
    );
  });

  test("circular references end", () => {
    expect(checkJsonSchema({ $ref: "#" }, 1)).toBeNull();
    const circle = { $defs: { a: { $ref: "#/$defs/b" }, b: { allOf: [{ $ref: "#/$defs/a" }], type: "string" } } };
    expect(checkJsonSchema({ ...circle, $ref: "#/$defs/a" }, 1)).toBe("arguments must be a string, got 1.");
  });

  test("a long chain of references is refused instead of overflowing", () => {
    const $defs: Record<string, unknown> = { d20000: {} };
    for (let index = 0; index < 20_000; index++) $defs[`d${index}`] = { anyOf: [{ $ref: `#/$defs/d${index + 1}` }] };
    expect(checkJsonSchema({ $defs, $ref: "#/$defs/d0" }, 1)).toContain("too deep to be checked");
  });

  test("nested unions with exponentially many branches are refused", () => {
    const twice = { $ref: "#" };
    const schema = {
      anyOf: [
        { properties: { a: twice }, required: ["b"] },
        { properties: { a: twice }, required: ["c"] },
      ],
    };
    let value: unknown = {};
    for (let depth = 0; depth < 60; depth++) value = { a: value };
    expect(checkJsonSchema(schema, value)).toContain("too large or too deep to be checked");
  });

  test("an array of 100,000 items is checked, and its repeats are found", () => {
    const items = Array.from({ length: 100_000 }, (_, index) => ({ index }));
    const schema = { type: "array", uniqueItems: true, items: { type: "object", required: ["index"] } };
    expect(checkJsonSchema(schema, items)).toBeNull();
    expect(checkJsonSchema(schema, [...items, { index: 77 }])).toContain("at [100000]");
  });

  test("a pattern is not run on a text longer than its limit", () => {
    expect(checkJsonSchema({ pattern: "a" }, "a".repeat(10_000))).toBeNull();
    expect(checkJsonSchema({ pattern: "a" }, "a".repeat(10_001))).toContain("at most 10000 characters long");
  });

  test("a value that is not a schema, or a dangling reference, accepts everything", () => {
    for (const schema of [
      null,
      3,
      [],
      { $ref: "other.json" },
      { $ref: "#/nowhere" },
      { pattern: "(" },
      { type: "thing" },
    ]) {
      expect(checkJsonSchema(schema, "x")).toBeNull();
    }
  });
});
