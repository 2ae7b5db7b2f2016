import { describe, expect, test } from "vitest";
import { entryAt, user } from "../../test/sample-log.ts";
import { treeNodeOf } from "./tree-node.ts";

const previewOf = (content: string): string | undefined =>
  treeNodeOf(entryAt(0, "a", null, { type: "message", message: user(content) }))?.preview;

describe("the node of an entry", () => {
  test("previews a text on one line", () => {
    expect(previewOf(" one\n two\t\u00a0three  four ")).toBe("one two three four");
  });

  test("cuts a long preview after 120 characters, and no emoji in half", () => {
    expect(previewOf("x".repeat(120))).toBe("x".repeat(120));
    expect(previewOf("x".repeat(121))).toBe(`${"x".repeat(120)}…`);
    expect(previewOf("😀".repeat(120))).toBe("😀".repeat(120));
    expect(previewOf(`x${"😀".repeat(120)}`)).toBe(`x${"😀".repeat(119)}…`);
  });

  test("exists for nodes, and not for facts", () => {
    expect(treeNodeOf(entryAt(1, "l", "a", { type: "leaf", targetId: "a" }))).toBe(null);
    const change = entryAt(2, "c", "a", { type: "model_change", provider: "offline", modelId: "one" });
    expect(treeNodeOf(change)).toEqual({
      id: "c",
      parentId: "a",
      seq: 2,
      type: "model_change",
      timestamp: change.timestamp,
      role: null,
      preview: "offline/one",
      label: null,
      checkpoints: [],
      toolCalls: [],
    });
  });
});
