import { describe, expect, test } from "vitest";
import { parseArguments } from "./parse-arguments.ts";

describe("the arguments that a model wrote", () => {
  test.for(["", "  ", "\n\t"])("are empty for the text %j", (text) => {
    expect(parseArguments(text)).toEqual({ ok: true, value: {} });
  });

  test("are the object in the text", () => {
    expect(parseArguments(' {"a": [1, {"b": null}]} ')).toEqual({ ok: true, value: { a: [1, { b: null }] } });
  });

  test.for([
    ["[1,2]", "an array of 2 items"],
    ['"text"', '"text"'],
    ["null", "null"],
    ["7", "7"],
  ])("must be an object, and %s is not", ([text, shown]) => {
    expect(parseArguments(text as string)).toEqual({
      ok: false,
      problem: `arguments must be a JSON object, got ${shown}.`,
    });
  });

  test("that end early give an error with the position, the expected token and the surrounding text", () => {
    const problem = problemOf('{\n  "path": "a.txt",\n  "count": 3 "next": 4\n}');
    expect(problem).toMatch(/^arguments cannot be read as JSON: Expected ',' or '}' .* position 34/);
    expect(problem).toContain(String.raw`, near "…\"path\": \"a.txt\",\n  \"count\": 3 \"next\": 4\n}".`);
  });

  test.for(["{", '{"command": "ls', '{"a": 1,}', "{a: 1}", '{"a": undefined}', '{"a": "\\x"}', '{"a": 1} and more'])(
    "that are %j are refused with a sentence, however long they are",
    (text) => {
      expect(problemOf(text)).toMatch(/^arguments cannot be read as JSON: .+\.$/s);
      expect(problemOf(`${text}${" ".repeat(100_000)}`).length).toBeLessThan(250);
    },
  );

  test("with a key that changes prototypes are refused, at any depth", () => {
    expect(problemOf('{"a": [{"__proto__": {"admin": true}}]}')).toBe(
      "arguments.a[0].__proto__ is a key that is not allowed.",
    );
  });

  test("that nest 10,000 deep are refused without overflowing", () => {
    expect(problemOf(`{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)).toContain("nests deeper than 200 levels");
    expect(problemOf(`{"a":${"[".repeat(10_000)}`)).toContain("Unexpected end of JSON input");
  });
});

function problemOf(text: string): string {
  const parsed = parseArguments(text);
  return parsed.ok ? "" : parsed.problem;
}
