import { expect, test } from "vitest";
import { compareWords, type Piece } from "./compare-words.ts";

const marked = (pieces: readonly Piece[]): string => pieces.map(({ text, own }) => (own ? `[${text}]` : text)).join("");

test("marks the words that only one text contains, including the spaces between them", () => {
  const { left, right } = compareWords("We go to Oslo by train.", "We go to the sea by train.");
  expect(marked(left)).toBe("We go to [Oslo] by train.");
  expect(marked(right)).toBe("We go to [the sea] by train.");
});

test("returns both texts unchanged, apart from the marks", () => {
  const [a, b] = ["a  b\n\nc <b>d</b> é 漢字", "b a\nc <i>d</i> è 漢"];
  const { left, right } = compareWords(a, b);
  expect(left.map(({ text }) => text).join("")).toBe(a);
  expect(right.map(({ text }) => text).join("")).toBe(b);
});

test("marks nothing in equal texts, in texts without common words, and in very long texts", () => {
  const none = (left: string, right: string): boolean => {
    const words = compareWords(left, right);
    return [...words.left, ...words.right].every(({ own }) => !own);
  };
  expect(none("same", "same")).toBe(true);
  expect(none("one two three four five six seven", "uno dos tres cuatro cinco seis siete")).toBe(true);
  expect(none("x ".repeat(50_000), "y ".repeat(50_000))).toBe(true);
});

test("is fast for completely different texts", () => {
  const text = (word: string): string => Array.from({ length: 1900 }, (_, index) => `${word}${index} and`).join(" ");
  const begin = performance.now();
  compareWords(text("a"), text("b"));
  expect(performance.now() - begin).toBeLessThan(1000);
});
