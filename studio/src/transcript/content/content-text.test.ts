import { expect, test } from "vitest";
import { textOf, withText } from "./content-text.ts";

const picture = { type: "image", mediaType: "image/png", data: "aGk=" } as const;

test("the text of a message consists of its text parts", () => {
  expect(textOf(null)).toBe("");
  expect(
    textOf([{ type: "text", text: "a" }, picture, { type: "thinking", text: "b" }, { type: "text", text: "c" }]),
  ).toBe("a\nc");
});

test("replacing the text keeps pictures and files", () => {
  expect(withText("old", "new")).toBe("new");
  expect(withText([{ type: "text", text: "old" }, picture], "new")).toEqual([{ type: "text", text: "new" }, picture]);
});
