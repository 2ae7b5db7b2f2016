import { expect, test } from "vitest";
import { contentOf, type PendingFile } from "./attachment.ts";

const part = { type: "image", mediaType: "image/png", data: "aGVsbG8h", name: "a.png" } as const;
const picture: PendingFile = { key: 1, name: "a.png", preview: null, progress: 1, part };

test("sends a text alone as a string, and with files as parts", () => {
  expect(contentOf("Hi", [])).toBe("Hi");
  expect(contentOf("Hi", [picture])).toEqual([{ type: "text", text: "Hi" }, part]);
  expect(contentOf("", [picture])).toEqual([part]);
});

test("leaves out a file that is still being uploaded", () => {
  expect(contentOf("Hi", [{ ...picture, part: null }])).toBe("Hi");
});
