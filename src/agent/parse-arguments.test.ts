import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findJsonBreak } from "./find-json-break.ts";
import { parseArguments } from "./parse-arguments.ts";

describe("the arguments that a model wrote", () => {
  test.for(["", "  ", "\n\t"])("are empty for the text %j", (text) => {
    expect(parseArguments(text)).toEqual({ ok: true, value: {} });
  });

  test("are the object that the text says", () => {
    expect(parseArguments(' {"a": [1, {"b": null}]} ')).toEqual({ ok: true, value: { a: [1, { b: null }] } });
  });

  test.for([
    ["[1,2]", "an array of 2 items"],
    ['"text"', '"text"'],
    ["null", "null"],
    ["7", "7"],
  ])("must be an object, and %s is none", ([text, shown]) => {
    expect(parseArguments(text as string)).toEqual({
      ok: false,
      problem: `arguments must be a JSON object, got ${shown}.`,
    });
  });

  test("that break off say where, what could have stood there, and what stands around it", () => {
    const problem = problemOf('{\n  "path": "a.txt",\n  "count": 3 "next": 4\n}');
    expect(problem).toBe(
      String.raw`arguments are not JSON: line 3, column 14 should be "," or "}", near "…\"path\": \"a.txt\",\n  \"count\": 3 \"next\": 4\n}".`,
    );
  });

  test("that are cut short say what is missing at their end", () => {
    expect(problemOf('{"command": "ls')).toBe(
      String.raw`arguments are not JSON: they end at line 1, column 16, where a closing " is missing, after "{\"command\": \"ls".`,
    );
  });

  test.for([
    ['{"a": 1,}', 9, "a key in double quotes"],
    ["{'a': 1}", 2, 'a key in double quotes or "}"'],
    ["{a: 1}", 2, 'a key in double quotes or "}"'],
    ['{"a" 1}', 6, '":"'],
    ['{"a": [1 2]}', 10, '"," or "]"'],
    ['{"a": undefined}', 7, "a value"],
    ['{"a": "\\x"}', 8, "an escape"],
    ['{"a": "line\nbreak"}', 12, "escape in place of a raw control character"],
    ['{"a": 1} and more', 10, "the end of the text"],
    ["{", 2, 'a key in double quotes or "}"'],
  ] as const)("name the column of the break in %j", ([text, column, expected]) => {
    const problem = problemOf(text);
    expect(problem).toContain(`column ${column}`);
    expect(problem).toContain(expected);
  });

  test("with a key that changes prototypes are refused, wherever it stands", () => {
    expect(problemOf('{"a": [{"__proto__": {"admin": true}}]}')).toBe(
      "arguments.a[0].__proto__ is a key that is not allowed.",
    );
  });

  test("that nest 10,000 deep are refused without overflowing", () => {
    expect(problemOf(`{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)).toContain("nests deeper than 200 levels");
    expect(problemOf(`{"a":${"[".repeat(10_000)}`)).toContain("they end at");
  });
});

describe("where a text stops being JSON", () => {
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"',
    "\\",
    "1",
    "-",
    ".5",
    "e3",
    "true",
    "nul",
    " ",
    "\n",
    "\u0001",
  ];
  const texts = fc.oneof(
    fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join("")),
    fc.tuple(fc.json(), fc.nat(), fc.constantFrom(...pieces)).map(([text, place, piece]) => {
      const at = place % (text.length + 1);
      return text.slice(0, at) + piece + text.slice(at + 1);
    }),
  );

  test("is found exactly for what is not JSON", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(findJsonBreak(text) === null).toBe(isJson(text));
      }),
      { numRuns: 3000 },
    );
  });

  test("has nothing wrong before it: what stands there can be gone on with", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, place) => {
        const cut = text.slice(0, place % (text.length + 1));
        const found = findJsonBreak(cut);
        // Only the end can be missing, but for a number or a word that is cut in the middle.
        if (found !== null && found.offset < cut.length) expect(cut.slice(found.offset)).toMatch(/^[-\d.eE+a-z\\u]+$/);
      }),
      { numRuns: 500 },
    );
  });

  test("is found in a text of some megabytes", () => {
    expect(findJsonBreak(`"${"a\\n".repeat(2_000_000)}"`)).toBeNull();
    expect(findJsonBreak(`"${"a".repeat(5_000_000)}`)?.offset).toBe(5_000_001);
  });
});

function problemOf(text: string): string {
  const parsed = parseArguments(text);
  return parsed.ok ? "" : parsed.problem;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
