import { expect, test } from "vitest";
import { bytesOf, contentOf } from "./attachment.ts";

const picture = { type: "image", mediaType: "image/png", data: "aGVsbG8h", name: "a.png" } as const;

test("sends a text alone as a string, and with pictures as parts", () => {
  expect(contentOf("Hi", [])).toBe("Hi");
  expect(contentOf("Hi", [picture])).toEqual([{ type: "text", text: "Hi" }, picture]);
  expect(contentOf("", [picture])).toEqual([picture]);
});

test("counts the bytes of pictures", () => {
  expect(bytesOf([picture, picture])).toBe(12);
});
