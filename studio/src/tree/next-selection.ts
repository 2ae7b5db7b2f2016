import type { TreeElement, TreeElements } from "./tree-elements.ts";

/** The element that a key selects: up and down along a branch, left and right among siblings. */
export function nextSelection(
  elements: TreeElements,
  current: TreeElement | null,
  leafId: string | null,
  key: string,
): TreeElement | null {
  const leaf = leafId === null ? null : (elements.byNode.get(leafId) ?? null);
  if (key === "Home") return elements.roots[0] ?? null;
  if (key === "End") return leaf ?? elements.all.at(-1) ?? null;
  if (current === null) return leaf ?? elements.roots[0] ?? null;
  if (key === "ArrowUp") return current.parent;
  if (key === "ArrowDown") return current.children[0] ?? null;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return null;
  const siblings = current.parent?.children ?? elements.roots;
  return siblings[siblings.indexOf(current) + (key === "ArrowLeft" ? -1 : 1)] ?? null;
}
