import { type Entry, isNode } from "./entry.ts";

/** A node of the session's tree, with what hangs on it in the order of the appends. */
export interface TreeNode {
  readonly entry: Entry;
  readonly children: readonly TreeNode[];
  readonly label?: string;
}

/** Entries by id, in log order. */
export type EntryIndex = ReadonlyMap<string, Entry>;

/** An index of entries by id; of two with one id, the first counts. */
export function indexEntries(entries: Iterable<Entry>): Map<string, Entry> {
  const index = new Map<string, Entry>();
  for (const entry of entries) if (!index.has(entry.id)) index.set(entry.id, entry);
  return index;
}

/**
 * The path from the root to an entry, root first. A missing parent ends it, and so does a cycle, which only a damaged
 * log can hold; an unknown entry has an empty path.
 */
export function branchTo(index: EntryIndex, entryId: string): Entry[] {
  const branch: Entry[] = [];
  const seen = new Set<string>();
  for (let id: string | null = entryId; id !== null && !seen.has(id); ) {
    const entry = index.get(id);
    if (entry === undefined) break;
    seen.add(id);
    branch.push(entry);
    id = entry.parentId;
  }
  return branch.reverse();
}

/**
 * The trees that a session's nodes form, one for each root: facts are left out, and so is what was pruned. A node whose
 * parent is missing is a root. Linear in the number of entries, whatever the shape.
 */
export function buildTree(entries: Iterable<Entry>): TreeNode[] {
  const all = [...entries];
  const labels = labelsOf(all);
  const pruned = prunedIds(all);
  const nodes = new Map<string, { entry: Entry; children: TreeNode[]; label?: string }>();
  const roots: TreeNode[] = [];
  for (const entry of all) {
    if (!isNode(entry) || nodes.has(entry.id)) continue;
    const label = labels.get(entry.id);
    nodes.set(entry.id, { entry, children: [], ...(label === undefined ? {} : { label }) });
  }
  for (const node of nodes.values()) {
    if (pruned.has(node.entry.id)) continue;
    const parent = parentOf(node.entry, nodes);
    (parent === undefined ? roots : parent.children).push(node);
  }
  return roots;
}

/** The nodes whose parent is `parentId` (null: the roots), in the order of the appends, without pruned ones. */
export function childrenOf(entries: Iterable<Entry>, parentId: string | null): Entry[] {
  const all = [...entries];
  const pruned = prunedIds(all);
  const index = indexEntries(all);
  return all.filter((entry) => {
    if (!isNode(entry) || pruned.has(entry.id)) return false;
    const parent = entry.parentId !== null && index.has(entry.parentId) ? entry.parentId : null;
    return parent === parentId;
  });
}

/** The labels that count: of each entry the latest in log order. */
export function labelsOf(entries: Iterable<Entry>): Map<string, string> {
  const labels = new Map<string, string>();
  for (const entry of entries) {
    if (entry.type !== "label") continue;
    if (entry.label === null) labels.delete(entry.targetId);
    else labels.set(entry.targetId, entry.label);
  }
  return labels;
}

/** The entries at which a branch was pruned. */
export function prunedIds(entries: Iterable<Entry>): Set<string> {
  const pruned = new Set<string>();
  for (const entry of entries) if (entry.type === "prune") pruned.add(entry.targetId);
  return pruned;
}

/** The compactions that were undone. */
export function undoneIds(entries: Iterable<Entry>): Set<string> {
  const undone = new Set<string>();
  for (const entry of entries) if (entry.type === "compaction_undone") undone.add(entry.targetId);
  return undone;
}

/** The leaf that a log's entries lead to. */
export function leafOf(entries: Iterable<Entry>): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (isNode(entry) && entry.parentId === leafId) leafId = entry.id;
  }
  return leafId;
}

type OpenNode = { readonly entry: Entry; readonly children: TreeNode[] };

function parentOf(entry: Entry, nodes: ReadonlyMap<string, OpenNode>): OpenNode | undefined {
  if (entry.parentId === null || entry.parentId === entry.id) return undefined;
  const parent = nodes.get(entry.parentId);
  // A parent stands before its children in every log that a store wrote; the other order is damage and could be a cycle.
  return parent !== undefined && parent.entry.seq < entry.seq ? parent : undefined;
}
