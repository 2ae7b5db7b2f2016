import { expect, test } from "vitest";
import { visibleText } from "./visible-text.ts";

test("shows terminal escapes and bidirectional marks as text", () => {
  expect(visibleText("\u001b[31mred\u0007")).toBe("[U+001B][31mred[U+0007]");
  expect(visibleText("evil\u202egnp.exe")).toBe("evil[U+202E]gnp.exe");
  expect(visibleText("\u0085")).toBe("[U+0085]");
});

test("keeps tabs, line ends and all scripts unchanged", () => {
  expect(visibleText("a\tb\nc")).toBe("a\tb\nc");
  expect(visibleText("שלום \u200f مرحبا 👩‍👩‍👧 é")).toBe("שלום \u200f مرحبا 👩‍👩‍👧 é");
  expect(visibleText("a\r\nb")).toBe("a\nb");
});
