import { expect, test } from "vitest";
import fc from "fast-check";
import { callParts, reachText, shownText } from "./approval-text.ts";
import type { JsonValue } from "../internal/json.ts";

test("splits a call into parts without losing an argument", () => {
  expect(callParts({ arguments: { command: "ls" } })).toEqual({ kind: "command", text: "ls", path: null, rest: null });
  expect(callParts({ arguments: { command: "cat", stdin: "x", path: "p", code: "c" } })).toMatchObject({
    kind: "command",
    rest: JSON.stringify({ stdin: "x", path: "p", code: "c" }, null, 2),
  });
  expect(callParts({ arguments: { language: "python", code: "print(1)" } })).toMatchObject({
    kind: "program",
    text: "print(1)",
    rest: '{\n  "language": "python"\n}',
  });
  expect(callParts({ arguments: { path: "a.txt", content: "hi", mode: 7 } })).toEqual({
    kind: "content",
    text: "hi",
    path: "a.txt",
    rest: '{\n  "mode": 7\n}',
  });
  const edit = { path: "a.txt", old_text: "a\nb", new_text: "c", content: 1 };
  expect(callParts({ arguments: edit })).toEqual({
    kind: "edit",
    text: "- a\n- b\n+ c",
    path: "a.txt",
    rest: '{\n  "content": 1\n}',
  });
  for (const odd of [null, "text", 7, ["a"], { command: 7 }, { path: "a" }] as JsonValue[]) {
    expect(callParts({ arguments: odd })).toMatchObject({ kind: "arguments", text: JSON.stringify(odd, null, 2) });
  }
});

test.for<[what: string, text: string, shown: string]>([
  ["an escape sequence", "ls\u001b[2K", "ls[U+001B][2K"],
  ["a change of direction", "rm \u202etxt.x", "rm [U+202E]txt.x"],
  ["marks of direction and joiners", "a\u200e\u200f\u061c\u200d\u200bb", "a[U+200E][U+200F][U+061C][U+200D][U+200B]b"],
  ["a carriage return", "echo hi\rrm x", "echo hi[U+000D]rm x"],
  ["a space that is none", "rm\u00a0-rf\u3000\u2800\u3164/", "rm[U+00A0]-rf[U+3000][U+2800][U+3164]/"],
  ["other ends of lines", "a\u2028b\u2029c\u0085d", "a[U+2028]b[U+2029]c[U+0085]d"],
  ["letters of tags, which have two halves", "a\u{e0041}b", "a[U+E0041]b"],
  ["half of a pair", "a\ud800b", "a[U+D800]b"],
  ["lines that push the rest out of sight", `ls${"\n".repeat(300)}rm`, "ls\n[299 empty lines]\nrm"],
  ["blanks that do", `ls${" ".repeat(300)}; rm`, "ls [300 spaces] ; rm"],
  ["tabs that do", `ls${"\t".repeat(300)}; rm`, "ls [300 tabs] ; rm"],
  ["nothing of a plain program", "if a:\n\tb()\n\n    c('ä 漢 😀')\n", "if a:\n\tb()\n\n    c('ä 漢 😀')\n"],
])("makes %s visible", ([, text, shown]) => {
  expect(shownText(text)).toBe(shown);
});

test("makes invisible characters visible", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      expect(shownText(text)).not.toMatch(/(?![\n\t ])[\p{C}\p{Z}]/u);
      if (/^[!-~]*$/.test(text)) expect(shownText(text)).toBe(text);
    }),
    { numRuns: 300 },
  );
});

test("describes where a call acts and what it can reach", () => {
  const reach = { directory: "/w", isolated: false, network: true };
  expect(reachText({ effects: "commands", reach })).toBe("in /w (not isolated, network)");
  expect(reachText({ effects: "commands", reach: { directory: null, isolated: true, network: false } })).toBe(
    "not on this machine (isolated, no network)",
  );
  expect(reachText({ effects: "writes", reach })).toBe("in /w");
  expect(reachText({ effects: "commands", reach: null })).toBe("nothing is known of what it can reach");
});
