import { type TreeNodeView, type TreeView, treeNodeOf } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Checkpoint } from "../../../src/session/store.ts";

/**
 * Adds new entries of the log to a tree, and updates the checkpoints. Returns null if the tree has to be loaded again:
 * a branch was pruned, or an entry refers to a node that the tree leaves out.
 */
export function growTree(
  tree: TreeView,
  entries: readonly Entry[],
  checkpoints: readonly Pick<Checkpoint, "id" | "leafId">[],
): TreeView | null {
  if (entries.some(({ type }) => type === "prune")) return null;
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  let { leafId } = tree;
  const isKnown = (id: string | null): boolean => id === null || byId.has(id);
  for (const entry of entries) {
    if ((entry.type === "leaf" || entry.type === "label") && !isKnown(entry.targetId)) return null;
    if (entry.type === "leaf") leafId = entry.targetId;
    const labelled = entry.type === "label" ? byId.get(entry.targetId) : undefined;
    if (entry.type === "label" && labelled !== undefined) byId.set(labelled.id, { ...labelled, label: entry.label });
    const node = treeNodeOf(entry);
    if (node === null) continue;
    if (!isKnown(node.parentId)) return null;
    byId.set(node.id, node);
    // An entry that is appended below another one than the leaf does not move the leaf.
    if (node.parentId === leafId) leafId = node.id;
  }
  mark(byId, checkpoints);
  return {
    leafId,
    version: tree.version + entries.length,
    nodes: [...byId.values()],
    activePath: pathTo(byId, leafId),
  };
}

/** Sets the checkpoints of each node; other nodes stay the same objects. */
function mark(byId: Map<string, TreeNodeView>, checkpoints: readonly Pick<Checkpoint, "id" | "leafId">[]): void {
  const byLeaf = new Map<string, string[]>();
  for (const { id, leafId } of checkpoints) {
    if (leafId !== null) byLeaf.set(leafId, [...(byLeaf.get(leafId) ?? []), id]);
  }
  for (const node of byId.values()) {
    const standing = byLeaf.get(node.id) ?? [];
    if (standing.join() !== node.checkpoints.join()) byId.set(node.id, { ...node, checkpoints: standing });
  }
}

function pathTo(byId: ReadonlyMap<string, TreeNodeView>, leafId: string | null): string[] {
  const path: string[] = [];
  for (let id = leafId; id !== null; id = byId.get(id)?.parentId ?? null) path.push(id);
  return path.reverse();
}
