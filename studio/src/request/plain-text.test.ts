import { expect, test } from "vitest";
import { plainText } from "./plain-text.ts";

test("shows control characters and direction marks instead of obeying them", () => {
  expect(plainText("a\u001b[31mb\u0000")).toBe("a‹U+001B›[31mb‹U+0000›");
  expect(plainText("evil\u202Etxt.exe\u2066")).toBe("evil‹U+202E›txt.exe‹U+2066›");
});

test("leaves lines, tabs and every script as they are", () => {
  const text = "one\n\ttwo שלום 👩\u200d🚀";
  expect(plainText(text)).toBe(text);
  expect(plainText("a\r\nb")).toBe("a\nb");
});
