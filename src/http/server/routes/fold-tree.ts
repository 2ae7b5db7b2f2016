import type { TreeNodeView, TreeView } from "../../tree-wire.ts";

/** Runs of more nodes are folded, but for so many at each of their ends. */
const RUN_MAX = 50;
const ENDS = 5;

/**
 * A tree without what lies within long runs of nodes that have nothing special about them: no branch, label or checkpoint,
 * and neither the leaf nor one of those to `keep`. What it takes follows the branches, and not the length of the log.
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
  // How many nodes of its run stand above a node, and below it.
  const above = new Map<string | null, number>();
  const below = new Map<string | null, number>();
  for (const { id, parentId } of plain) above.set(id, (above.get(parentId) ?? -1) + 1);
  for (const { id, parentId } of plain.toReversed()) below.set(parentId, (below.get(id) ?? 0) + 1);
  const leftOut = plain.filter(({ id }) => {
    const [before, after] = [above.get(id) ?? 0, below.get(id) ?? 0];
    return before >= ENDS && after >= ENDS && before + after >= RUN_MAX;
  });
  // The node that a run hangs on, and how many of the run are left out down to here.
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
