import type { TreeNodeView, TreeView } from "skein/client";
import { describe, expect, test } from "vitest";
import { nextSelection } from "./next-selection.ts";
import { countBelow, elementsOf } from "./tree-elements.ts";
import { fitted, isSeen, kept, middleOf, revealed, seenOf, spotAt, zoomed } from "./tree-geometry.ts";
import { layOut } from "./tree-layout.ts";

/** Builds a tree from `child<parent` words in log order; the leaf is the last node unless named. */
function treeOf(words: string, leafId?: string, more: Record<string, Partial<TreeNodeView>> = {}): TreeView {
  const nodes = words.split(" ").map((word, seq): TreeNodeView => {
    const [id = "", parentId = null] = word.split("<");
    const node = { id, parentId, seq, type: "message", role: "user", preview: id, label: null } as const;
    return { ...node, timestamp: "2026-01-01T00:00:00.000Z", checkpoints: [], toolCalls: [], ...more[id] };
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const activePath: string[] = [];
  const leaf = leafId ?? nodes.at(-1)?.id ?? null;
  for (let id = leaf; id !== null; id = byId.get(id)?.parentId ?? null) activePath.unshift(id);
  return { leafId: leaf, version: nodes.length, nodes, activePath };
}

const chainOf = (count: number): string =>
  Array.from({ length: count }, (_, index) => (index === 0 ? "n0" : `n${index}<n${index - 1}`)).join(" ");
const NONE: ReadonlySet<string> = new Set();
const sizesOf = (tree: TreeView, unfolded = NONE): number[] =>
  elementsOf(tree, unfolded).all.map(({ nodes }) => nodes.length);

describe("the elements of a tree", () => {
  test("are one for each node without long runs", () => {
    expect(sizesOf(treeOf("a b<a c<a d<c"))).toEqual([1, 1, 1, 1]);
  });

  test("fold the middle of a long branch, and keep its beginning and end visible", () => {
    expect(sizesOf(treeOf(chainOf(10)))).toEqual([1, 7, 1, 1]);
  });

  test("do not fold nodes with a label or a checkpoint, or compactions", () => {
    const marked = {
      n4: { label: "here" },
      n8: { checkpoints: ["c"] },
      n12: { type: "compaction", role: null },
    };
    expect(sizesOf(treeOf(chainOf(20), undefined, marked))).toEqual([1, 3, 1, 3, 1, 3, 1, 5, 1, 1]);
  });

  test("show all nodes of an unfolded run, and mark the first", () => {
    const { all, byNode } = elementsOf(treeOf(chainOf(10)), new Set(["n1"]));
    expect(all).toHaveLength(10);
    expect(byNode.get("n1")?.unfolded).toBe(true);
    expect(byNode.get("n2")?.parent?.id).toBe("n1");
  });

  test("contain a node with a pruned parent as a root", () => {
    expect(elementsOf(treeOf("a b<gone"), NONE).roots).toHaveLength(2);
  });

  test("are four for ten thousand nodes in one branch", () => {
    expect(sizesOf(treeOf(chainOf(10_000)))).toEqual([1, 9_997, 1, 1]);
  });
});

test("counts the nodes below a node, including itself", () => {
  expect(countBelow(treeOf("a b<a c<b d<a e<c"), "b")).toBe(3);
});

describe("the layout", () => {
  const tree = treeOf("a b<a c<b d<c x<a y<x z<b", "d");
  const elements = elementsOf(tree, NONE);
  const layout = layOut(elements);
  const spot = (id: string): readonly number[] => [layout.spots.get(id)?.row ?? -1, layout.spots.get(id)?.lane ?? -1];

  test("has the active path in the first column, and each branch in a separate one", () => {
    expect(["a", "b", "c", "d"].map((id) => spot(id)[1])).toEqual([0, 0, 0, 0]);
    expect(spot("z")).toEqual([2, 1]);
    expect(spot("x")).toEqual([1, 2]);
    expect(spot("y")).toEqual([2, 2]);
  });

  test("puts no two elements at the same position", () => {
    const words = ["n0"];
    for (let index = 1; index < 400; index++) words.push(`n${index}<n${Math.floor((index * 7919) % index)}`);
    const { spots } = layOut(elementsOf(treeOf(words.join(" ")), NONE));
    expect(new Set([...spots.values()].map(({ row, lane }) => `${row} ${lane}`)).size).toBe(spots.size);
  });

  test("does not move existing elements when the active branch grows", () => {
    const grown = layOut(elementsOf(treeOf("a b<a c<b d<c x<a y<x z<b e<d", "e"), NONE));
    for (const id of layout.spots.keys()) {
      expect([grown.spots.get(id)?.row, grown.spots.get(id)?.lane]).toEqual(spot(id));
    }
  });

  test("moves along branches and siblings with the arrow keys", () => {
    const at = (id: string) => elements.byNode.get(id) ?? null;
    const next = (id: string | null, key: string) => nextSelection(elements, id === null ? null : at(id), "d", key)?.id;
    expect(next(null, "ArrowDown")).toBe("d");
    expect(next("d", "ArrowUp")).toBe("c");
    expect(next("b", "ArrowRight")).toBe("x");
    expect(next("x", "ArrowLeft")).toBe("b");
    expect(next("x", "ArrowRight")).toBeUndefined();
    expect(next("x", "Home")).toBe("a");
    expect(next("x", "End")).toBe("d");
  });
});

describe("the window", () => {
  const size = { width: 400, height: 600 };
  const words = Array.from({ length: 10_000 }, (_, index) => (index === 0 ? "n0" : `n${index}<n${index >> 1}`));
  const layout = layOut(elementsOf(treeOf(words.join(" ")), NONE));
  const leaf = layout.spots.get("n9999");

  test("contains only the visible ones of ten thousand nodes", () => {
    expect(seenOf(layout, { x: 0, y: 0, zoom: 1 }, size).spots.length).toBeLessThan(100);
  });

  test("moves no further than needed to show an element", () => {
    if (leaf === undefined) throw new Error("There is no leaf.");
    const view = revealed(leaf, { x: -1e6, y: 0, zoom: 1 }, size);
    expect(isSeen(leaf, view, size)).toBe(true);
    expect(revealed(leaf, view, size)).toEqual(view);
  });

  test("zooms around the pointer", () => {
    const before = { x: 10, y: 20, zoom: 1 };
    const found = spotAt(layout, before, 50, 120);
    expect(spotAt(layout, zoomed(before, 1.5, 50, 120), 50, 120)).toBe(found);
  });

  test("keeps the drawing visible, however far it is dragged", () => {
    const picture = { width: 300, height: 200 };
    for (const far of [-1e6, 1e6]) {
      const { x, y, zoom } = kept({ x: far, y: far, zoom: 0.5 }, picture, size);
      expect(x < size.width && y < size.height && x + 300 * zoom > 0 && y + 200 * zoom > 0).toBe(true);
    }
    expect(middleOf({ x: 10, y: 10, zoom: 0.1 }, picture, size)).toEqual({ x: 40, y: 30 });
  });

  test("does not enlarge a small tree", () => {
    expect(fitted(layOut(elementsOf(treeOf("a"), NONE)), size).zoom).toBe(1);
  });
});
