import type { TreeNodeView } from "skein/client";
import { expect, test } from "vitest";
import { captionOf } from "./node-kind.ts";

const node = (given: Partial<TreeNodeView>): TreeNodeView =>
  ({ type: "message", role: "assistant", preview: "", toolCalls: [], ...given }) as TreeNodeView;
const result = (preview: string): string => captionOf(node({ role: "tool", preview }));

test("a node has its text without Markdown as caption, else its calls", () => {
  expect(captionOf(node({ preview: "**Oslo** has `fjords`" }))).toBe("Oslo has fjords");
  expect(captionOf(node({ toolCalls: ["grep", "read"] }))).toBe("calls grep, read");
  expect(captionOf(node({ type: "variables", role: null }))).toBe("variables changed");
});

test("a result of one of our tools is named in words, not in JSON, although its preview is cut", () => {
  expect(result('{"exit_code":0,"stdout":"one \\"line\\"\\nand more…')).toBe('one "line"');
  expect(result('{"exit_code":0,"stdout":"","stderr":"","ok":true}')).toBe("exit code 0");
  expect(result('{"exit_code":2,"stdout":"","stderr":"cd: no such…')).toBe("exit code 2");
  expect(result('{"exit_code":1,"stdout":"not ok 1\\n…')).toBe("exit code 1: not ok 1");
  expect(result('{"entries":[{"path":"docs","type":"dir…')).toBe("a list of files");
  expect(result('{"exists":false}')).toBe("the path does not exist");
  expect(result('{"ok":false,"error_kind":"not_found","message":"The path was not found."}')).toBe(
    "The path was not found.",
  );
  expect(result('{"answer":42}')).toBe('{"answer":42}');
  expect(result("")).toBe("(no text)");
});
