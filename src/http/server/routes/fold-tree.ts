import type { TreeNodeView, TreeView } from "../../tree-wire.ts";

/** Longer chains of plain nodes are folded, except for a few nodes at each end. */
const CHAIN_MAX = 50;
const ENDS = 5;

/**
 * Leaves out the inside of long chains of plain nodes. A plain node has no branch, label or checkpoint, and is neither the leaf
 * nor one of those to `keep`. The size of the result depends on the number of branches, not on the length of the log.
 */
export function foldTree(tree: TreeView, keep: readonly string[] = []): TreeView {
  const children = new Map<string | null, number>();
  for (const { parentId } of tree.nodes) children.set(parentId, (children.get(parentId) ?? 0) + 1);
  const isPlain = ({ id, parentId, type, label, checkpoints }: TreeNodeView): boolean =>
    parentId !== null &&
    children.get(parentId) === 1 &&
    children.get(id) === 1 &&
    !(label !== null || checkpoints.length > 0 || id === tree.leafId || keep.includes(id)) &&
    !(type === "compaction" || type === "branch_summary");
  const plain = tree.nodes.filter(isPlain);
  // The number of plain nodes above and below a node in its chain.
  const above = new Map<string | null, number>();
  const below = new Map<string | null, number>();
  for (const { id, parentId } of plain) above.set(id, (above.get(parentId) ?? -1) + 1);
  for (const { id, parentId } of plain.toReversed()) below.set(parentId, (below.get(id) ?? 0) + 1);
  const leftOut = plain.filter(({ id }) => {
    const [before, after] = [above.get(id) ?? 0, below.get(id) ?? 0];
    return before >= ENDS && after >= ENDS && before + after >= CHAIN_MAX;
  });
  // For a node left out: the last shown node above its chain, and how many nodes of the chain are left out so far.
  const gaps = new Map<string | null, { readonly parentId: string | null; readonly skipped: number }>();
  for (const { id, parentId } of leftOut) {
    const gap = gaps.get(parentId) ?? { parentId, skipped: 0 };
    gaps.set(id, { ...gap, skipped: gap.skipped + 1 });
  }
  return {
    ...tree,
    nodes: tree.nodes.filter(({ id }) => !gaps.has(id)).map((node) => ({ ...node, ...gaps.get(node.parentId) })),
    activePath: tree.activePath.filter((id) => !gaps.has(id)),
  };
}
