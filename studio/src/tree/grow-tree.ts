import { type TreeNodeView, type TreeView, treeNodeOf } from "skein/client";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Checkpoint } from "../../../src/session/store.ts";

/**
 * A tree after the entries that follow it in the log, with the session's checkpoints as they are now. Null where a branch
 * was pruned: then the tree is to be read anew.
 */
export function growTree(
  tree: TreeView,
  entries: readonly Entry[],
  checkpoints: readonly Pick<Checkpoint, "id" | "leafId">[],
): TreeView | null {
  if (entries.some(({ type }) => type === "prune")) return null;
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  let { leafId } = tree;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    const labelled = entry.type === "label" ? byId.get(entry.targetId) : undefined;
    if (entry.type === "label" && labelled !== undefined) byId.set(labelled.id, { ...labelled, label: entry.label });
    const node = treeNodeOf(entry);
    if (node === null) continue;
    byId.set(node.id, node);
    // What is appended below another entry than the leaf leaves the leaf where it is.
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

/** Gives each node the checkpoints that stand there; the others stay the same objects. */
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
