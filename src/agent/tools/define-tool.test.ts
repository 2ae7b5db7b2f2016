import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { z as old } from "zod/v3";
import type { ValueOf, ValueSchema } from "../schema/value-schema.ts";
import { defineTool, type ToolDefinition } from "./define-tool.ts";
import type { StandardSchema } from "../schema/standard-schema.ts";
import type { CheckedArguments, ToolContext } from "./tool.ts";

const plain = {
  name: "find_order",
  description: "Finds an order by its number.",
  parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
  execute: () => "found",
} as const;

const context = { callId: "call" } as ToolContext;

describe("a tool with JSON Schema", () => {
  test("tells models its name, description and parameters", () => {
    const tool = defineTool(plain);
    expect(tool.schema).toEqual({ name: plain.name, description: plain.description, parameters: plain.parameters });
  });

  test("accepts valid arguments unchanged, and describes the problem of others", async () => {
    const tool = defineTool(plain);
    expect(await tool.check({ number: "1", more: [] })).toEqual({ ok: true, value: { number: "1", more: [] } });
    expect(await tool.check({ number: 1 })).toEqual({
      ok: false,
      problem: "arguments.number must be a string, got 1.",
    });
  });

  test("passes the arguments and the context to execute", () => {
    const tool = defineTool({ ...plain, execute: ({ number }, { callId }) => `${number} ${callId}` });
    expect(tool.execute({ number: "7" }, context)).toBe("7 call");
  });

  test("keeps its schema when the caller's object changes later", async () => {
    const parameters = { type: "object", properties: { a: { type: "string" } } };
    const tool = defineTool({ ...plain, parameters });
    parameters.properties.a.type = "number";
    expect(await tool.check({ a: "text" })).toEqual({ ok: true, value: { a: "text" } });
    expect(Object.isFrozen(tool.schema.parameters)).toBe(true);
  });

  test("always describes an object, without a `$schema`", async () => {
    const tool = defineTool({ ...plain, parameters: { $schema: "https://json-schema.org/draft/2020-12/schema" } });
    expect(tool.schema.parameters).toEqual({ type: "object", properties: {} });
    expect(await tool.check([])).toMatchObject({ ok: false });
  });

  test("knows the types of its arguments", () => {
    const tool = defineTool({
      ...plain,
      parameters: {
        type: "object",
        properties: {
          name: { type: "string" },
          count: { type: "integer" },
          mode: { enum: ["fast", "slow"] },
          tags: { type: "array", items: { type: ["string", "null"] } },
          place: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
          either: { anyOf: [{ type: "boolean" }, { const: 3 }] },
          any: { $ref: "#" },
        },
        required: ["name", "mode"],
      },
      execute(args) {
        expectTypeOf(args).toEqualTypeOf<{
          readonly name: string;
          readonly mode: "fast" | "slow";
          readonly count?: number;
          readonly tags?: readonly (string | null)[];
          readonly place?: { readonly x: number };
          readonly either?: boolean | 3;
          readonly any?: unknown;
        }>();
        return args.name;
      },
    });
    expectTypeOf<ValueOf<Readonly<Record<string, string>>>>().toEqualTypeOf<unknown>();
    expect(tool.execute({ name: "n", mode: "fast" }, context)).toBe("n");
  });
});

describe("a tool with a Standard Schema", () => {
  const parameters = z.object({
    path: z.string().transform((path) => path.toUpperCase()),
    limit: z.number().int().default(10),
    lines: z.array(z.object({ at: z.number() })).optional(),
  });
  const tool = defineTool({
    ...plain,
    parameters,
    execute(args) {
      expectTypeOf(args).toEqualTypeOf<z.output<typeof parameters>>();
      return args;
    },
  });

  test("tells models the JSON Schema of its input", () => {
    expect(tool.schema.parameters).toMatchObject({
      type: "object",
      properties: { path: { type: "string" }, limit: { type: "integer", default: 10 } },
      required: ["path"],
    });
    expect(tool.schema.parameters).not.toHaveProperty("$schema");
  });

  test("runs with the schema's output, with defaults and conversions applied", async () => {
    expect(await tool.check({ path: "a" })).toEqual({ ok: true, value: { path: "A", limit: 10 } });
  });

  test("names the invalid arguments", async () => {
    const problem = problemOf(await tool.check({ path: 1, lines: [{ at: 1 }, { at: "x" }] }));
    expect(problem).toMatch(/^arguments\.path is refused: .*; arguments\.lines\[1\]\.at is refused: .*\.$/);
    expect(problem).not.toContain("..");
  });

  test("awaits an asynchronous validation", async () => {
    const even = z.object({ n: z.number().refine(async (n) => n % 2 === 0, "n must be even") });
    const slow = defineTool({ ...plain, parameters: even });
    expect(await slow.check({ n: 2 })).toEqual({ ok: true, value: { n: 2 } });
    expect(problemOf(await slow.check({ n: 3 }))).toBe("arguments.n is refused: n must be even.");
  });

  test("turns a check that throws into a problem", async () => {
    const broken = z.object({ n: z.number() }).transform((): never => {
      throw new Error("no converter");
    });
    const fails = defineTool({ ...plain, parameters: broken, jsonSchema: { type: "object" } });
    expect(problemOf(await fails.check({ n: 1 }))).toBe("arguments could not be checked: no converter.");
  });

  test("never gets a key that changes prototypes, nor a depth that overflows", async () => {
    const loose = defineTool({ ...plain, parameters: z.looseObject({}) });
    expect(problemOf(await loose.check(JSON.parse('{"__proto__": {}}')))).toContain("__proto__");
    expect(problemOf(await loose.check(JSON.parse(`{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)))).toContain(
      "nests deeper than 200 levels",
    );
  });

  test("lists at most five problems", async () => {
    const many = defineTool({ ...plain, parameters: z.object({ list: z.array(z.number()) }) });
    expect(problemOf(await many.check({ list: Array(50).fill("x") })).split("; ")).toHaveLength(5);
  });

  test("without JSON Schema needs a separate one", async () => {
    const handmade: StandardSchema<unknown, number> = {
      "~standard": { version: 1, vendor: "handmade", validate: () => ({ value: 42 }) },
    };
    expect(() => defineTool({ ...plain, parameters: handmade })).toThrow(
      'The tool find_order has a schema of "handmade" that gives no JSON Schema; add one as jsonSchema.',
    );
    const described = defineTool({ ...plain, parameters: handmade, jsonSchema: { type: "object", title: "Any" } });
    expect(described.schema.parameters).toEqual({ type: "object", properties: {}, title: "Any" });
    expect(await described.check({})).toEqual({ ok: true, value: 42 });
  });

  test("of zod 3 is refused in one sentence, with the version that helps", () => {
    const schema = old.object({ n: old.number() });
    const sentence =
      "The tool find_order has a schema of a zod that gives no JSON Schema; make it with zod 4.2 or later, or give JSON Schema.";
    expect(() => defineTool({ ...plain, parameters: schema })).toThrow(sentence);
    // Schemas of zod before 3.24 do not implement Standard Schema.
    const { safeParse, _def } = schema;
    expect(() => defineTool({ ...plain, parameters: { safeParse, _def } as never })).toThrow(sentence);
  });

  test("may be a function, and may support only the older draft", () => {
    const older = Object.assign(() => {}, {
      "~standard": {
        version: 1 as const,
        vendor: "older",
        validate: (value: unknown) => ({ value }),
        jsonSchema: {
          input({ target }: { readonly target: string }) {
            if (target !== "draft-07") throw new Error(`unknown target ${target}`);
            return { type: "object", title: target };
          },
        },
      },
    });
    expect(defineTool({ ...plain, parameters: older }).schema.parameters).toMatchObject({ title: "draft-07" });
  });

  test("that cannot be converted is refused with the reason", () => {
    expect(() => defineTool({ ...plain, parameters: z.object({ when: z.date() }) })).toThrow(/Date cannot be/);
  });
});

describe("what a tool declares", () => {
  test("is in the tool", () => {
    const tool = defineTool({
      ...plain,
      resourceKey: ({ number }) => `order:${number}`,
      exclusive: true,
      idempotent: false,
      timeoutMs: 500,
    });
    expect(tool.resourceKey?.({ number: "7" })).toBe("order:7");
    expect(tool).toMatchObject({ exclusive: true, idempotent: false, timeoutMs: 500 });
  });

  test("is absent if it was not declared", () => {
    expect(Object.keys(defineTool(plain)).sort()).toEqual(["check", "execute", "schema"]);
  });

  test("can include its effects, and that it acts only in the sandbox", () => {
    expect(defineTool({ ...plain, effects: "reads", sandboxed: true })).toMatchObject({
      effects: "reads",
      sandboxed: true,
    });
    expect(defineTool(plain)).not.toHaveProperty("effects");
  });

  test("can require approval always, never, or depending on the arguments", async () => {
    expect(defineTool({ ...plain, needsApproval: true }).needsApproval?.({})).toBe(true);
    expect(defineTool({ ...plain, needsApproval: false }).needsApproval).toBeUndefined();
    const some = defineTool({ ...plain, needsApproval: async ({ number }) => number === "1" });
    expect(await some.needsApproval?.({ number: "1" })).toBe(true);
    expect(await some.needsApproval?.({ number: "2" })).toBe(false);
  });
});

describe("a definition that cannot work", () => {
  // biome-ignore format: a table reads best with one case to a line.
  const cases: [what: string, wrong: Record<string, unknown>, said: string][] = [
    ["an empty name", { name: "" }, 'A tool cannot be named ""'],
    ["a name with a space", { name: "find order" }, "A tool cannot be named"],
    ["a name with a line end", { name: "find\n" }, "A tool cannot be named"],
    ["a name of 65 characters", { name: "a".repeat(65) }, "A tool cannot be named"],
    ["a name that is no text", { name: 7 }, "A tool cannot be named"],
    ["a blank description", { description: " " }, "has no description"],
    ["no execute", { execute: undefined }, "has no execute"],
    ["a resource key that is a text", { resourceKey: "key" }, "has a resourceKey"],
    ["an approval that is a text", { needsApproval: "yes" }, "has a needsApproval"],
    ["effects that there are not", { effects: "read" }, 'has the effects "read"'],
    ["effects that are no word", { effects: null }, 'has the effects "null"'],
    ["a timeout of nothing", { timeoutMs: 0 }, "has a timeoutMs"],
    ["a timeout that timers cannot keep", { timeoutMs: 2 ** 31 }, "has a timeoutMs"],
    ["no parameters", { parameters: undefined }, "has no schema"],
    ["a list for parameters", { parameters: [] }, "has no schema"],
    ["parameters that are not of an object", { parameters: { type: "string" } }, 'of the type "string"'],
    ["a function in the schema", { parameters: { default: () => 1 } }, "is not JSON"],
    ["an unknown type", { parameters: { properties: { a: { type: "strng" } } } }, 'parameters.properties.a.type must be one of string'],
    ["a required that is no list", { parameters: { properties: { a: { required: true } } } }, "parameters.properties.a.required must be a list of property names"],
    ["a broken pattern", { parameters: { properties: { a: { pattern: "(" } } } }, "must be a regular expression"],
    ["a broken pattern of keys", { parameters: { patternProperties: { "(": {} } } }, "regular expressions as keys"],
    ["a limit that is no number", { parameters: { minimum: "1" } }, "parameters.minimum must be a number"],
    ["a multiple of nothing", { parameters: { multipleOf: 0 } }, "a number above 0"],
    ["a size below nothing", { parameters: { properties: { a: { minLength: -1 } } } }, "a whole number from 0"],
    ["an empty union", { parameters: { anyOf: [] } }, "a list of schemas"],
    ["a property that is no schema", { parameters: { properties: { a: "string" } } }, 'parameters.properties.a must be a schema, got "string"'],
    ["a schema in a list that is none", { parameters: { allOf: [{}, 1] } }, "parameters.allOf[1] must be a schema"],
    ["a reference to nowhere", { parameters: { $ref: "#/$defs/a" } }, 'points at "#/$defs/a"'],
    ["a reference to another document", { parameters: { $ref: "https://a.example/b.json" } }, "which is no schema in this schema"],
    ["a reference to itself", { parameters: { $ref: "#" } }, "leads back to itself"],
    ["a circle of references", { parameters: { $defs: { a: { anyOf: [{ $ref: "#/$defs/b" }] }, b: { not: { $ref: "#/$defs/a" } } } } }, "leads back to itself"],
  ];

  test.for(cases)("is refused for %s", ([, wrong, said]) => {
    const define = () => defineTool({ ...plain, ...wrong } as ToolDefinition<ValueSchema>);
    expect(define).toThrow(expect.objectContaining({ code: "INVALID_TOOL", message: expect.stringContaining(said) }));
    expect(define).toThrow(/\.$/);
  });

  test("is not one with references that are recursive, or used several times", () => {
    const node = { type: "object", properties: { left: { $ref: "#" }, right: { $ref: "#" } } };
    expect(defineTool({ ...plain, parameters: node }).schema.parameters).toEqual(node);
    const $defs = { text: { type: "string" }, one: { $ref: "#/$defs/text" }, two: { $ref: "#/$defs/text" } };
    const twice = { properties: { a: { anyOf: [{ $ref: "#/$defs/one" }, { $ref: "#/$defs/two" }] } }, $defs };
    expect(defineTool({ ...plain, parameters: twice }).schema.name).toBe("find_order");
  });
});

function problemOf(checked: CheckedArguments): string {
  return checked.ok ? "" : checked.problem;
}
