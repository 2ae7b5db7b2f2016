import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { branchTo, buildTree, type TreeNode } from "../../../session/log/tree.ts";
import { treeNodeOf } from "../../tree-node.ts";
import type { TreeNodeView, TreeView } from "../../wire.ts";

/** The tree of a session: every node but the pruned ones, without what it says. Reads the whole log. */
export async function readTreeView(store: SessionStore, head: SessionHead): Promise<TreeView> {
  const { id } = head.header;
  const entries: Entry[] = [];
  // Not beyond the head: leaf, version and nodes are then of one moment.
  for await (const entry of store.read(id, { before: head.version })) entries.push(entry);
  const checkpoints = await checkpointsByLeaf(store, id);
  const index = new Map(entries.filter(isNode).map((entry) => [entry.id, entry]));
  const nodes = flatten(buildTree(entries)).flatMap((node) => nodeView(node, checkpoints.get(node.entry.id) ?? []));
  return {
    leafId: head.leafId,
    version: head.version,
    nodes: nodes.sort((a, b) => a.seq - b.seq),
    activePath: head.leafId === null ? [] : branchTo(index, head.leafId).map((entry) => entry.id),
  };
}

/** All nodes of some trees; without recursion, as a path can be as long as the log. */
function flatten(roots: readonly TreeNode[]): TreeNode[] {
  const all = [...roots];
  for (const node of all) for (const child of node.children) all.push(child);
  return all;
}

function nodeView({ entry, label }: TreeNode, checkpoints: readonly string[]): TreeNodeView[] {
  const node = treeNodeOf(entry);
  return node === null ? [] : [{ ...node, label: label ?? null, checkpoints }];
}

async function checkpointsByLeaf(store: SessionStore, sessionId: string): Promise<ReadonlyMap<string, string[]>> {
  const byLeaf = new Map<string, string[]>();
  for (const { id, leafId } of await store.listCheckpoints(sessionId)) {
    if (leafId !== null) byLeaf.set(leafId, [...(byLeaf.get(leafId) ?? []), id]);
  }
  return byLeaf;
}
