import { expect, test } from "vitest";
import { cutText } from "./cut-text.ts";

test("the copy equals the slice, also if it splits a surrogate pair", () => {
  const text = 'a"\u{1F600}\n\u2028b'.repeat(20);
  for (let start = 0; start < 12; start++) {
    for (let end = start; end < 30; end++) expect(cutText(text, start, end)).toBe(text.slice(start, end));
  }
  expect(cutText("short", 0, 100)).toBe("short");
});
