import { expect, test } from "vitest";
import { usage } from "../../test/sample-log.ts";
import { textOf } from "./message.ts";
import { addUsage, NO_USAGE } from "./usage.ts";

test("textOf joins the text parts and leaves out images, files and thinking", () => {
  expect(textOf("plain")).toBe("plain");
  expect(textOf(null)).toBe("");
  expect(textOf([])).toBe("");
  expect(
    textOf([
      { type: "thinking", text: "hidden" },
      { type: "text", text: "a" },
      { type: "image", mediaType: "image/png", data: "AA==" },
      { type: "text", text: "" },
      { type: "text", text: "b" },
    ]),
  ).toBe("a\n\nb");
});

test("addUsage adds every counter; an optional one is present if either side has it", () => {
  const cached = { ...usage(1, 2), cacheReadTokens: 4 };
  const thought = { ...usage(10, 20), cacheReadTokens: 40, cacheWriteTokens: 0, reasoningTokens: 5 };
  expect(addUsage(usage(1, 2), usage(10, 20))).toEqual(usage(11, 22));
  expect(addUsage(cached, usage(10, 20))).toEqual({ ...usage(11, 22), cacheReadTokens: 4 });
  expect(addUsage(cached, thought)).toEqual({
    ...usage(11, 22),
    cacheReadTokens: 44,
    cacheWriteTokens: 0,
    reasoningTokens: 5,
  });
  expect(addUsage(NO_USAGE, cached)).toEqual(cached);
});

test("addUsage of zero returns the other usage, and changes neither side", () => {
  const spent = usage(1, 2);
  expect(addUsage(spent, undefined)).toBe(spent);
  addUsage(spent, usage(5));
  expect(spent).toEqual(usage(1, 2));
  expect(Object.isFrozen(NO_USAGE)).toBe(true);
});
