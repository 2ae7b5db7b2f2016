import type { TreeNodeView, TreeView } from "skein/client";
import { kindOf } from "./node-kind.ts";

/** The minimum length of a run to fold. */
const RUN_MIN = 3;

/** One element of the drawing: a node, or a folded run of nodes without branches. */
export interface TreeElement {
  /** The id of its first node. */
  readonly id: string;
  readonly nodes: readonly TreeNodeView[];
  /** The number of session nodes that it represents, including those that the server left out of the tree. */
  readonly count: number;
  readonly parent: TreeElement | null;
  /** The first child continues the column of its parent. */
  readonly children: TreeElement[];
  /** Whether it is on the active path. */
  readonly active: boolean;
  /** Whether it is the first node of an unfolded run. */
  readonly unfolded: boolean;
}

/** The elements of a tree, and the element of each node. */
export interface TreeElements {
  readonly roots: readonly TreeElement[];
  readonly all: readonly TreeElement[];
  readonly byNode: ReadonlyMap<string, TreeElement>;
}

/**
 * Builds the elements of a tree. Runs of plain nodes are folded into one element, unless the id of their first node is
 * in `unfolded`; the node `asked` is never folded.
 */
export function elementsOf(tree: TreeView, unfolded: ReadonlySet<string>, asked: string | null = null): TreeElements {
  const index = new Map(tree.nodes.map((node) => [node.id, node]));
  const children = childrenOf(tree, index);
  const active = new Set(tree.activePath);
  const foldable = (node: TreeNodeView): boolean =>
    isPlain(node, tree.leafId) && node.id !== asked && isInARow(node, children);
  const all: TreeElement[] = [];
  const byNode = new Map<string, TreeElement>();
  const roots: TreeElement[] = [];
  // Log order has parents before children, so the element of a parent always exists before its children.
  for (const node of tree.nodes) {
    if (byNode.has(node.id)) continue;
    const parent = (node.parentId === null ? undefined : byNode.get(node.parentId)) ?? null;
    const run = foldable(node) ? runFrom(node, children, foldable) : [node];
    const folded = run.length >= RUN_MIN && !unfolded.has(node.id);
    for (const nodes of folded ? [run] : run.map((one) => [one])) {
      const first = nodes[0] as TreeNodeView;
      const above = first === node ? parent : (byNode.get(first.parentId ?? "") ?? null);
      const element: TreeElement = {
        id: first.id,
        nodes,
        count: countOf(nodes),
        parent: above,
        children: [],
        active: active.has(first.id),
        unfolded: !folded && run.length >= RUN_MIN && first === node,
      };
      all.push(element);
      (above?.children ?? roots).push(element);
      for (const one of nodes) byNode.set(one.id, element);
    }
  }
  // The active path continues the column; otherwise log order is kept.
  for (const { children: below } of all)
    if (below.length > 1) below.sort((a, b) => Number(b.active) - Number(a.active));
  roots.sort((a, b) => Number(b.active) - Number(a.active));
  return { roots, all, byNode };
}

/** The number of nodes below a node, including itself. */
export function countBelow(tree: TreeView, id: string): number {
  const below = new Set([id]);
  for (const node of tree.nodes) if (node.parentId !== null && below.has(node.parentId)) below.add(node.id);
  below.delete(id);
  return 1 + countOf(tree.nodes.filter((node) => below.has(node.id)));
}

function countOf(nodes: readonly TreeNodeView[]): number {
  return nodes.reduce((count, { skipped = 0 }) => count + 1 + skipped, 0);
}

type Children = ReadonlyMap<string, readonly TreeNodeView[]>;

function childrenOf(tree: TreeView, index: ReadonlyMap<string, TreeNodeView>): Children {
  const children = new Map<string, TreeNodeView[]>();
  for (const node of tree.nodes) {
    if (node.parentId === null || !index.has(node.parentId)) continue;
    const siblings = children.get(node.parentId);
    if (siblings === undefined) children.set(node.parentId, [node]);
    else siblings.push(node);
  }
  return children;
}

function isPlain(node: TreeNodeView, leafId: string | null): boolean {
  const kind = kindOf(node);
  if (kind === "compaction" || kind === "summary") return false;
  return node.label === null && node.checkpoints.length === 0 && node.id !== leafId;
}

/** Whether a node has one child and one parent with one child; the second to last node of a branch is not folded. */
function isInARow(node: TreeNodeView, children: Children): boolean {
  const below = children.get(node.id) ?? [];
  if (node.parentId === null || children.get(node.parentId)?.length !== 1 || below.length !== 1) return false;
  return children.has((below[0] as TreeNodeView).id);
}

function runFrom(
  first: TreeNodeView,
  children: Children,
  foldable: (node: TreeNodeView) => boolean,
): readonly TreeNodeView[] {
  const run = [first];
  for (let next = children.get(first.id)?.[0]; next !== undefined && foldable(next); ) {
    run.push(next);
    next = children.get(next.id)?.[0];
  }
  return run;
}
