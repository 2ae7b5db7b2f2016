import type { TreeNodeView, TreeView } from "skein/client";

/** The nodes from the root to a node; empty for an unknown node. */
export function pathTo(tree: TreeView, nodeId: string | null): readonly TreeNodeView[] {
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  const path: TreeNodeView[] = [];
  // Ends also for damaged data with a cycle of parents: a path cannot be longer than the tree.
  for (let node = byId.get(nodeId ?? ""); node !== undefined && path.length < byId.size; ) {
    path.push(node);
    node = byId.get(node.parentId ?? "");
  }
  return path.reverse();
}

/** The leaves of all branches, the active one first, then the latest. */
export function leavesOf(tree: TreeView): readonly TreeNodeView[] {
  const parents = new Set(tree.nodes.map(({ parentId }) => parentId));
  const leaves = tree.nodes.filter(({ id }) => !parents.has(id) || id === tree.leafId);
  const rank = (node: TreeNodeView): number => (node.id === tree.leafId ? Number.POSITIVE_INFINITY : node.seq);
  return leaves.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
}

/** The title of a branch: its label, or its last message. */
export function branchTitle(tree: TreeView, leafId: string | null): string {
  const path = pathTo(tree, leafId);
  const leaf = path.at(-1);
  if (leaf === undefined) return "before the first turn";
  if (leaf.label !== null) return leaf.label;
  const said = path.findLast(({ type, preview }) => type === "message" && preview !== "");
  return said === undefined ? leaf.type : said.preview;
}
