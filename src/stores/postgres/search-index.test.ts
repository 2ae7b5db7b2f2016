import fc from "fast-check";
import { expect, test } from "vitest";
import { findTerm, parseSearch } from "../../session/search.ts";
import { addTrigrams, trigramsOf } from "./search-index.ts";

const text = fc
  .array(fc.constantFrom("a", "B", "İ", "ß", "Σ", "😀", "\ud83d", "\0", " ", "é", "x"))
  .map((parts) => parts.join(""));

test("trigramsOf finds every text that contains the term", () => {
  let found = 0;
  fc.assert(
    fc.property(text, text, text, (before, inside, after) => {
      const whole = `${before}${inside}${after}`;
      const [term] = inside.trim() === "" || inside.includes('"') ? [] : parseSearch(`"${inside}"`);
      if (term === undefined || findTerm(whole, term) === null) return;
      const wanted = trigramsOf(term);
      if (wanted === null) return;
      found += 1;
      const numbers = new Set<number>();
      addTrigrams(numbers, whole);
      for (const number of wanted.slice(1, -1).split(",")) expect(numbers).toContain(Number(number));
    }),
    { numRuns: 500 },
  );
  expect(found).toBeGreaterThan(50);
});

test("trigramsOf returns null for short terms and patterns, and at most 24 trigrams of a long term", () => {
  expect(trigramsOf({ type: "text", text: "ab" })).toBeNull();
  expect(trigramsOf({ type: "pattern", pattern: /abc/ })).toBeNull();
  expect(trigramsOf({ type: "text", text: "abcdefghij".repeat(50) })?.split(",").length).toBeLessThanOrEqual(24);
});
