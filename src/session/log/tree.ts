import { checkArgument, checkObjects, isIterable } from "../check-arguments.ts";
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
 * The trees that a session's nodes form, one for each root: facts are left out, and so is what was pruned. A node whose
 * parent is missing is a root. Linear in the number of entries, whatever the shape.
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
  // Several may be given the same nodes, so that nobody may change them.
  for (const children of childrenById.values()) Object.freeze(children);
  return roots;
}

/** The nodes whose parent is `parentId` (null: the roots), in the order of the appends, without pruned ones. */
export function childrenOf(entries: Iterable<Entry>, parentId: string | null): Entry[] {
  return groupChildren(entries).get(parentId) ?? [];
}

/** The nodes by their parent (null: the roots), in the order of the appends, without pruned ones. */
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

/** The labels that count: of each entry the latest in log order. */
export function labelsOf(entries: Iterable<Entry>): Map<string, string> {
  const labels = new Map<string, string>();
  for (const entry of entryList(entries, "labelsOf")) {
    if (entry.type !== "label") continue;
    if (entry.label === null) labels.delete(entry.targetId);
    else labels.set(entry.targetId, entry.label);
  }
  return labels;
}

/** The entries as a list. @throws {SessionError} `INVALID_OPTION` that names the call, for anything else than entries. */
export function entryList(entries: Iterable<Entry>, call: string): readonly Entry[] {
  checkArgument(isIterable(entries), entries, call, "the entries of a log");
  const all = [...entries];
  checkObjects(all, call, "the entries of a log");
  return all;
}

/** The `label` entries that count for what is on a path. */
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

/** The entries at which a branch was pruned. */
function prunedIds(entries: Iterable<Entry>): Set<string> {
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

/** The leaf that a log's entries lead to. A node whose parent is not among them is a root. */
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
  // A parent stands before its children in every log that a store wrote; the other order is damage and could be a cycle.
  return parent !== undefined && parent.seq < entry.seq ? parent.id : null;
}
