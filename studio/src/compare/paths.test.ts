import type { TreeNodeView, TreeView } from "skein/client";
import { expect, test } from "vitest";
import { branchTitle, leavesOf, pathTo } from "./paths.ts";

function node(id: string, parentId: string | null, seq: number, more: Partial<TreeNodeView> = {}): TreeNodeView {
  const plain = {
    type: "message",
    timestamp: "",
    role: "user",
    preview: id,
    label: null,
    checkpoints: [],
    toolCalls: [],
  } as const;
  return { id, parentId, seq, ...plain, ...more };
}

const tree: TreeView = {
  leafId: "c",
  version: 5,
  activePath: ["a", "b", "c"],
  nodes: [
    node("a", null, 0),
    node("b", "a", 1),
    node("c", "b", 2),
    node("x", "a", 3, { label: "plan B" }),
    node("y", "b", 4),
  ],
};

test("returns the path from the root to a node, and an empty one for an unknown node", () => {
  expect(pathTo(tree, "c").map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(pathTo(tree, "nobody")).toEqual([]);
  expect(pathTo(tree, null)).toEqual([]);
});

test("lists the leaves, the active one first, then the latest", () => {
  expect(leavesOf(tree).map(({ id }) => id)).toEqual(["c", "y", "x"]);
  expect(leavesOf({ ...tree, leafId: "b" }).map(({ id }) => id)).toEqual(["b", "y", "x", "c"]);
});

test("names a branch by its label, else by its last message", () => {
  expect(branchTitle(tree, "x")).toBe("plan B");
  expect(branchTitle(tree, "y")).toBe("y");
  expect(branchTitle(tree, null)).toBe("before the first turn");
});
