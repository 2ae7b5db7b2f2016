import fc from "fast-check";
import { expect, test } from "vitest";
import { diffLines } from "./line-diff.ts";

const show = (before: string, after: string): string =>
  diffLines(before, after)
    .map(({ kind, text }) => `${{ same: " ", removed: "-", added: "+" }[kind]}${text}`)
    .join("|");

test("shows removed and added lines between equal ones", () => {
  expect(show("a\nb\nc\n", "a\nB\nc\n")).toBe(" a|-b|+B| c");
  expect(show("a\nc", "a\nb\nc")).toBe(" a|+b| c");
  expect(show("", "one\ntwo\n")).toBe("+one|+two");
  expect(show("one", "")).toBe("-one");
});

test("equal and removed lines are the old text, equal and added ones the new text", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before.join("\n"), after.join("\n"));
      expect(lines.filter(({ kind }) => kind !== "added").map((line) => line.text)).toEqual(before);
      expect(lines.filter(({ kind }) => kind !== "removed").map((line) => line.text)).toEqual(after);
    }),
  );
});

test("avoids the quadratic comparison of very long texts", () => {
  const many = (letter: string): string => Array.from({ length: 5000 }, (_, index) => `${letter}${index}`).join("\n");
  expect(diffLines(many("a"), many("b"))).toHaveLength(10_000);
});
