import { checkArgument, checkObjects, isIterable } from "../check-arguments.ts";
import { type Entry, isNode } from "./entry.ts";

/** A node of the session's tree, with its children in log order. */
export interface TreeNode {
  readonly entry: Entry;
  readonly children: readonly TreeNode[];
  readonly label?: string;
}

/** Entries by id, in log order. */
export type EntryIndex = ReadonlyMap<string, Entry>;

/** Indexes entries by id; of duplicates, the first counts. */
export function indexEntries(entries: Iterable<Entry>): Map<string, Entry> {
  const index = new Map<string, Entry>();
  for (const entry of entries) if (!index.has(entry.id)) index.set(entry.id, entry);
  return index;
}

/**
 * The path from the root to an entry, root first. It ends at a missing parent or at a cycle, which only a damaged log
 * can have. An unknown entry has an empty path.
 */
export function branchTo(index: EntryIndex, entryId: string): Entry[] {
  checkArgument(index instanceof Map, index, "branchTo", "a Map of entries by id");
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
 * The trees of a session's nodes, one for each root, without facts and pruned branches. A node with a missing parent is
 * a root. Takes time linear in the number of entries.
 */
export function buildTree(entries: Iterable<Entry>): TreeNode[] {
  const all = entryList(entries, "buildTree");
  const labels = labelsOf(all);
  const pruned = prunedIds(all);
  const index = indexEntries(all.filter(isNode));
  const childrenById = new Map<string, TreeNode[]>();
  const roots: TreeNode[] = [];
  for (const id of index.keys()) childrenById.set(id, []);
  for (const [id, entry] of index) {
    if (pruned.has(id)) continue;
    const label = labels.get(id);
    const parentId = parentIdOf(entry, index);
    const siblings = parentId === null ? roots : childrenById.get(parentId);
    const node = { entry, children: childrenById.get(id) ?? [], ...(label === undefined ? {} : { label }) };
    siblings?.push(Object.freeze(node));
  }
  // Frozen, because several callers may share the nodes.
  for (const children of childrenById.values()) Object.freeze(children);
  return roots;
}

/** The nodes whose parent is `parentId` (null: the roots), in log order, without pruned ones. */
export function childrenOf(entries: Iterable<Entry>, parentId: string | null): Entry[] {
  return groupChildren(entries).get(parentId) ?? [];
}

/** The nodes by parent (null: the roots), in log order, without pruned ones. */
export function groupChildren(entries: Iterable<Entry>): Map<string | null, Entry[]> {
  const all = [...entries];
  const pruned = prunedIds(all);
  const index = indexEntries(all.filter(isNode));
  const children = new Map<string | null, Entry[]>();
  for (const entry of index.values()) {
    if (pruned.has(entry.id)) continue;
    const parentId = parentIdOf(entry, index);
    const siblings = children.get(parentId);
    if (siblings === undefined) children.set(parentId, [entry]);
    else siblings.push(entry);
  }
  return children;
}

/** The labels in force: the latest of each entry. */
export function labelsOf(entries: Iterable<Entry>): Map<string, string> {
  const labels = new Map<string, string>();
  for (const entry of entryList(entries, "labelsOf")) {
    if (entry.type !== "label") continue;
    if (entry.label === null) labels.delete(entry.targetId);
    else labels.set(entry.targetId, entry.label);
  }
  return labels;
}

/**
 * The entries as a list. @throws {SessionError} `INVALID_OPTION` that names the call, if the value is not a list of
 * entries.
 */
export function entryList(entries: Iterable<Entry>, call: string): readonly Entry[] {
  checkArgument(isIterable(entries), entries, call, "the entries of a log");
  const all = [...entries];
  checkObjects(all, call, "the entries of a log");
  return all;
}

/** The `label` entries in force for the entries of a path. */
export function labelsOn(path: readonly Entry[], entries: Iterable<Entry>): Entry[] {
  const onPath = new Set(path.map((entry) => entry.id));
  const latest = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.type !== "label" || !onPath.has(entry.targetId)) continue;
    latest.delete(entry.targetId);
    if (entry.label !== null) latest.set(entry.targetId, entry);
  }
  return [...latest.values()];
}

/** The ids of the entries at which a branch was pruned. */
function prunedIds(entries: Iterable<Entry>): Set<string> {
  const pruned = new Set<string>();
  for (const entry of entries) if (entry.type === "prune") pruned.add(entry.targetId);
  return pruned;
}

/** The ids of the undone compactions. */
export function undoneIds(entries: Iterable<Entry>): Set<string> {
  const undone = new Set<string>();
  for (const entry of entries) if (entry.type === "compaction_undone") undone.add(entry.targetId);
  return undone;
}

/** The leaf that results from a log's entries. A node whose parent is not among them is a root. */
export function leafOf(entries: Iterable<Entry>): string | null {
  let leafId: string | null = null;
  const seen = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    if (!isNode(entry)) continue;
    const root = entry.parentId === null || !seen.has(entry.parentId);
    if (entry.parentId === leafId || (leafId === null && root)) leafId = entry.id;
    seen.add(entry.id);
  }
  return leafId;
}

/** The parent of a node in the tree, or null for a root: a node without a parent, or with one that is missing or damaged. */
function parentIdOf(entry: Entry, nodes: EntryIndex): string | null {
  const parent = entry.parentId === null ? undefined : nodes.get(entry.parentId);
  // In a log that a store wrote, a parent always precedes its children. The other order is damage and could be a cycle.
  return parent !== undefined && parent.seq < entry.seq ? parent.id : null;
}
