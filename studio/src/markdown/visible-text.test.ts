import { expect, test } from "vitest";
import { visibleText } from "./visible-text.ts";

test("shows terminal escapes and changes of direction instead of doing what they say", () => {
  expect(visibleText("\u001b[31mred\u0007")).toBe("[U+001B][31mred[U+0007]");
  expect(visibleText("evil\u202egnp.exe")).toBe("evil[U+202E]gnp.exe");
  expect(visibleText("\u0085")).toBe("[U+0085]");
});

test("leaves tabs, line ends and every script as they are", () => {
  expect(visibleText("a\tb\nc")).toBe("a\tb\nc");
  expect(visibleText("שלום \u200f مرحبا 👩‍👩‍👧 é")).toBe("שלום \u200f مرحبا 👩‍👩‍👧 é");
  expect(visibleText("a\r\nb")).toBe("a\nb");
});
