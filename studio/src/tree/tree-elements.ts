import type { TreeNodeView, TreeView } from "skein/client";
import { kindOf } from "./node-kind.ts";

/** The fewest nodes that are worth folding. */
const RUN_MIN = 3;

/** One element of the picture: a node, or a run of nodes without branches that is folded. */
export interface TreeElement {
  /** The id of its first node. */
  readonly id: string;
  readonly nodes: readonly TreeNodeView[];
  /** How many nodes of the session it stands for, those included that the tree leaves out. */
  readonly count: number;
  readonly parent: TreeElement | null;
  /** The one that goes on straight down first. */
  readonly children: TreeElement[];
  /** Whether it is on the active path. */
  readonly active: boolean;
  /** Whether it is the first node of a run that was unfolded. */
  readonly unfolded: boolean;
}

/** The tree as elements: which there are, and in which element each node is. */
export interface TreeElements {
  readonly roots: readonly TreeElement[];
  readonly all: readonly TreeElement[];
  readonly byNode: ReadonlyMap<string, TreeElement>;
}

/**
 * Makes a picture's elements of a tree. Runs of nodes that have nothing special about them are folded into one element,
 * unless the id of their first node is among the `unfolded`; the node that is `asked` for stands on its own.
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
  // Log order has parents before children, so every node but the first of a run finds its parent's element.
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
  // The active path goes straight down; the order is otherwise that of the log.
  for (const { children: below } of all)
    if (below.length > 1) below.sort((a, b) => Number(b.active) - Number(a.active));
  roots.sort((a, b) => Number(b.active) - Number(a.active));
  return { roots, all, byNode };
}

/** How many nodes stand below a node, itself included. */
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

/** Whether a node has neighbours on both sides and no branches beside it; the last but one of a branch stays in sight. */
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
