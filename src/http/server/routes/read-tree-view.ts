import { SessionError } from "../../../session/errors.ts";
import { type Entry, entryCharacters, isNode } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { branchTo, buildTree, type TreeNode } from "../../../session/log/entry-tree.ts";
import { treeNodeOf } from "../../tree-node.ts";
import type { TreeNodeView, TreeView } from "../../tree-wire.ts";

/** The approximate limit on the characters of a tree's nodes. */
const TREE_CHARACTERS_MAX = 64 * 1024 * 1024;

/**
 * The tree of a session: every node except pruned ones, without its content. Reads the whole log, and keeps only what is shown of
 * each entry.
 *
 * @throws {SessionError} `TOO_LARGE` if the nodes would not fit into memory.
 */
export async function readTreeView(store: SessionStore, head: SessionHead): Promise<TreeView> {
  const { id } = head.header;
  const entries: Entry[] = [];
  const shown = new Map<string, TreeNodeView>();
  let characters = 0;
  // Ends at the head's version, so that leaf, version and nodes are consistent.
  for await (const entry of store.read(id, { before: head.version })) {
    const kept = linksOf(entry);
    const node = treeNodeOf(entry);
    entries.push(kept);
    if (node !== null && !shown.has(entry.id)) shown.set(entry.id, node);
    characters += entryCharacters(kept) + (node?.preview.length ?? 0);
    if (characters > TREE_CHARACTERS_MAX) {
      throw new SessionError(
        "TOO_LARGE",
        `Session ${id} has too many nodes to show as one tree; read it page by page.`,
      );
    }
  }
  const checkpoints = await checkpointsByLeaf(store, id);
  const index = new Map(entries.filter(isNode).map((entry) => [entry.id, entry]));
  const nodes = flatten(buildTree(entries)).flatMap(({ entry, label }): TreeNodeView[] => {
    const node = shown.get(entry.id);
    if (node === undefined) return [];
    return [{ ...node, label: label ?? null, checkpoints: checkpoints.get(entry.id) ?? [] }];
  });
  return {
    leafId: head.leafId,
    version: head.version,
    nodes: nodes.sort((a, b) => a.seq - b.seq),
    activePath: head.leafId === null ? [] : branchTo(index, head.leafId).map((entry) => entry.id),
  };
}

/** All nodes of the trees; without recursion, because a path can be as long as the log. */
function flatten(roots: readonly TreeNode[]): TreeNode[] {
  const all = [...roots];
  for (const node of all) for (const child of node.children) all.push(child);
  return all;
}

/** The fields of an entry from which the tree is built. */
function linksOf(entry: Entry): Entry {
  const { id, parentId, seq, type, timestamp } = entry;
  const target = "targetId" in entry ? { targetId: entry.targetId } : {};
  const label = "label" in entry ? { label: entry.label } : {};
  return { id, parentId, seq, type, timestamp, ...target, ...label } as Entry;
}

async function checkpointsByLeaf(store: SessionStore, sessionId: string): Promise<ReadonlyMap<string, string[]>> {
  const byLeaf = new Map<string, string[]>();
  for (const { id, leafId } of await store.listCheckpoints(sessionId)) {
    if (leafId !== null) byLeaf.set(leafId, [...(byLeaf.get(leafId) ?? []), id]);
  }
  return byLeaf;
}

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
