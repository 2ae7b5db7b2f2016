import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { copyJson, JSON_DEPTH_MAX, NotJson, sameJson } from "./json.ts";

describe("copyJson", () => {
  test("copies every kind of JSON value", () => {
    const value = {
      text: "ä\u2028",
      number: -1.5e300,
      yes: true,
      nothing: null,
      list: [1, [], {}],
      nested: { a: { b: "c" } },
    };
    expect(copyJson(value)).toEqual(value);
  });

  test("returns the same as JSON.parse of JSON.stringify for any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        if (JSON.stringify(value).includes('"__proto__"')) return;
        expect(JSON.stringify(copyJson(value))).toBe(JSON.stringify(value));
      }),
    );
  });

  test("the copy does not change when the caller changes the original", () => {
    const value = { list: [{ text: "before" }] };
    const copy = copyJson(value);
    (value.list[0] as { text: string }).text = "after";
    value.list.push({ text: "more" });
    expect(copy).toEqual({ list: [{ text: "before" }] });
  });

  test("the copy is frozen at every depth", () => {
    const copy = copyJson({ list: [{ text: "fixed" }] }) as { list: { text: string }[] };
    expect(() => Object.assign(copy, { list: 1 })).toThrow(TypeError);
    expect(() => copy.list.push({ text: "more" })).toThrow(TypeError);
    expect(() => Object.assign(copy.list[0] as object, { text: "other" })).toThrow(TypeError);
  });

  test("leaves out undefined properties, as JSON does", () => {
    expect(Object.keys(copyJson({ a: undefined, b: 1 }) as object)).toEqual(["b"]);
  });

  test("converts negative zero to zero, as JSON does", () => {
    expect(Object.is(copyJson(-0), 0)).toBe(true);
  });

  test("reads a getter once and stores its value", () => {
    let reads = 0;
    const copy = copyJson({
      get count() {
        reads += 1;
        return reads;
      },
    });
    expect([copy, reads]).toEqual([{ count: 1 }, 1]);
  });

  test("accepts plain objects of another realm and objects without a prototype", () => {
    const foreign: unknown = runInNewContext("({ list: [1, { a: 2 }] })");
    const bare: object = Object.assign(Object.create(null), { a: 1 });
    expect(copyJson({ foreign, bare })).toEqual({ foreign: { list: [1, { a: 2 }] }, bare: { a: 1 } });
  });

  class Point {
    x = 1;
  }
  test.for<[string, unknown, string]>([
    ["a function", () => 1, "is a function"],
    ["a bigint", 1n, "is a bigint"],
    ["a symbol", Symbol("x"), "is a symbol"],
    ["NaN", Number.NaN, "is NaN"],
    ["an infinity", -1 / 0, "is -Infinity"],
    ["a Date", new Date(0), "is a Date"],
    ["a Map", new Map([[1, 2]]), "is a Map"],
    ["a Set", new Set([1]), "is a Set"],
    ["a typed array", new Uint8Array(2), "is a Uint8Array"],
    ["a boxed text", Object("text"), "is a String"],
    ["a class instance", new Point(), "is a Point"],
    ["an object made of another object", Object.create({ inherited: 1 }), "is a Object"],
    ["undefined in a list", [undefined], "is undefined"],
    ["a promise", Promise.resolve(1), "is a Promise"],
    ["a method called toJSON", { toJSON: () => "other" }, "is a function"],
  ])("refuses %s instead of losing it", ([, value, problem]) => {
    expect(() => copyJson({ value })).toThrow(NotJson);
    expect(() => copyJson({ value })).toThrow(problem);
  });

  test("refuses a hole in a list", () => {
    const holed: unknown[] = [1];
    holed[2] = 3;
    expect(() => copyJson(holed, "list")).toThrow("list[1] is undefined");
  });

  test("refuses a getter that throws, with its error as the cause", () => {
    const reason = new Error("gone");
    const value = {
      get a() {
        throw reason;
      },
    };
    expect(() => copyJson(value, "entry")).toThrow(
      expect.objectContaining({ message: "entry cannot be read", cause: reason }),
    );
  });

  test("refuses an own key __proto__, which JSON.parse can make", () => {
    const value: unknown = JSON.parse('{"a":[{"__proto__":{"admin":true}}]}');
    expect(() => copyJson(value, "entry")).toThrow("entry.a[0].__proto__ is a key that is not allowed");
    expect(Object.hasOwn(Object.prototype, "admin")).toBe(false);
  });

  test("copies keys that are also names of object members", () => {
    const value = { constructor: 1, hasOwnProperty: 2, toString: "3", length: 4 };
    expect(copyJson(value)).toEqual(value);
  });

  test("the error contains the path of the refused value", () => {
    expect(() => copyJson({ a: [{ b: 1n }] }, "entry")).toThrow(
      expect.objectContaining({ path: "entry.a[0].b", problem: "is a bigint, which JSON cannot carry" }),
    );
  });

  test("refuses a value that contains itself", () => {
    const list: unknown[] = [];
    list.push(list);
    const object: Record<string, unknown> = {};
    object.self = { object };
    expect(() => copyJson(list)).toThrow("contains itself");
    expect(() => copyJson(object)).toThrow("contains itself");
  });

  test("accepts the same object in two places", () => {
    const shared = { a: 1 };
    expect(copyJson([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
  });

  test("accepts nesting up to the limit, and refuses deeper nesting", () => {
    expect(() => copyJson(nested(JSON_DEPTH_MAX))).not.toThrow();
    expect(() => copyJson(nested(JSON_DEPTH_MAX + 1))).toThrow("nests deeper than 200");
  });
});

describe("sameJson", () => {
  test("a value equals its copy, whatever the order of the keys", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(sameJson(value, reversed(value))).toBe(true);
      }),
    );
  });

  test("agrees with JSON on which values differ", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }), (a, b) => {
        expect(sameJson(a, b)).toBe(canonical(a) === canonical(b));
        expect(sameJson(b, a)).toBe(sameJson(a, b));
      }),
    );
  });

  test("treats an undefined property as missing", () => {
    expect(sameJson({ a: 1, b: undefined }, { a: 1 })).toBe(true);
    expect(sameJson({ a: 1 }, { a: 1, b: undefined })).toBe(true);
    expect(sameJson({ a: undefined, b: 1 }, { c: 1 })).toBe(false);
  });

  test.for<[unknown, unknown]>([
    [[], {}],
    [[], { length: 0 }],
    [{ length: 0 }, []],
    [{}, []],
    [null, {}],
    [{}, null],
    [0, false],
    ["1", 1],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], [1, 1]],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ toString: 1 }, { valueOf: 1 }],
    [{ a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 3 }] } }],
  ])("tells %j from %j", ([a, b]) => {
    expect(sameJson(a, b)).toBe(false);
  });

  test("does not treat an inherited member as a property", () => {
    expect(sameJson({ constructor: Object }, { other: 1 })).toBe(false);
  });
});

function nested(levels: number): unknown {
  let value: unknown = "bottom";
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { value };
  return value;
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const pairs = Object.entries(value).map(([key, item]): [string, unknown] => [key, reversed(item)]);
  return Object.fromEntries(pairs.reverse());
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(Object.is(value, -0) ? 0 : value);
  const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${pairs.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join()}}`;
}

test("the error message for a cycle is short", () => {
  const loop: Record<string, unknown> = {};
  loop.again = loop;
  const error = (() => {
    try {
      copyJson(loop);
    } catch (caught) {
      return caught as NotJson;
    }
  })();
  expect(error?.message).toMatch(/^value\.again\.again.*… nests deeper/);
  expect(error?.message.length).toBeLessThan(200);
});
