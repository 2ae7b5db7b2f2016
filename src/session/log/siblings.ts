import { isNode } from "./entry.ts";

/** The fields of an entry that determine its position in the tree. */
export interface EntryLink {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: string;
  /** Of a `prune` entry: the branch that it hides. */
  readonly targetId?: string | null;
}

/**
 * For each message the ids of its siblings, itself included, in log order: the messages that follow the same message,
 * such as several answers to one question. Nodes between them that are not messages do not count. Pruned messages are
 * left out. Messages whose parents are not among the entries are siblings if they have the same parent.
 */
export function siblingMessages(entries: Iterable<EntryLink>): Map<string, readonly string[]> {
  // For each node, the last message at or above it.
  const messageAt = new Map<string | null, string | null>([[null, null]]);
  const groups = new Map<string | null, string[]>();
  const siblings = new Map<string, readonly string[]>();
  for (const { id, parentId, type } of unprunedNodes(entries)) {
    const above = messageAt.get(parentId);
    const key = above === undefined ? parentId : above;
    messageAt.set(id, type === "message" ? id : key);
    if (type !== "message") continue;
    const group = groups.get(key) ?? [];
    group.push(id);
    groups.set(key, group);
    siblings.set(id, group);
  }
  return siblings;
}

/** The leaf below an entry, or the entry itself, that was appended last; pruned branches are left out. */
export function latestLeaf(entries: Iterable<EntryLink>, entryId: string): string {
  const below = new Set([entryId]);
  let leaf = entryId;
  for (const { id, parentId } of unprunedNodes(entries)) {
    if (parentId === null || !below.has(parentId)) continue;
    below.add(id);
    leaf = id;
  }
  return leaf;
}

function unprunedNodes(entries: Iterable<EntryLink>): readonly EntryLink[] {
  const all = [...entries];
  const hidden = new Set(all.flatMap(({ type, targetId }) => (type === "prune" && targetId != null ? [targetId] : [])));
  const nodes: EntryLink[] = [];
  for (const entry of all) {
    if (!isNode(entry)) continue;
    if (entry.parentId !== null && hidden.has(entry.parentId)) hidden.add(entry.id);
    if (!hidden.has(entry.id)) nodes.push(entry);
  }
  return nodes;
}
