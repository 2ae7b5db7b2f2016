import { expect, test } from "vitest";
import { loadTokenizer } from "./tokenizer.ts";

test("counts with a real tokenizer if one is installed", async () => {
  const count = await loadTokenizer();
  expect(count("")).toBe(0);
  expect(count("hello world")).toBe(2);
  expect(count("many words of ordinary English text ".repeat(200))).toBeGreaterThan(1000);
  expect(count("many words of ordinary English text ".repeat(200))).toBeLessThan(1300);
});

test("treats text that looks like a control token, or is half an emoji, as text", async () => {
  const count = await loadTokenizer();
  expect(count("<|endoftext|> and <|im_start|>")).toBeGreaterThan(2);
  expect(count("\ud83d")).toBeGreaterThan(0);
});

test("counts a long text without spaces in pieces, because the tokenizer takes quadratic time", async () => {
  const count = await loadTokenizer();
  expect(count("=".repeat(200_000))).toBe(200 * count("=".repeat(1000)));
});
