import { applyEdits, type Edit, editsOn } from "../../session/context/edits.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";

/** The effect of the edits on the path to a leaf. */
export interface EditedEntries {
  /** The edits in force, by the entry that each changes. */
  readonly edits: ReadonlyMap<string, Edit>;
  /** From each entry that is left out, and each edit, to the node that replaces it as a parent. */
  readonly leftOut: ReadonlyMap<string, string | null>;
  /** From each entry that is left out to the next one of the path that is not, which a compaction keeps instead. */
  readonly next: ReadonlyMap<string, string>;
}

/**
 * Computes what edits change. Keeps only the ids of nodes, and of messages with calls and their results what tells which go
 * together; nothing if there is no edit.
 */
export async function readEdits(entries: AsyncIterable<Entry>, leafId: string | null): Promise<EditedEntries | null> {
  const nodes = new Map<string, Entry>();
  let hasEdits = false;
  for await (const entry of entries) {
    if (!isNode(entry)) continue;
    hasEdits ||= entry.type === "context_edit";
    nodes.set(entry.id, withoutText(entry));
  }
  if (!hasEdits) return null;
  const path: Entry[] = [];
  for (let id = leafId; id !== null && path.length <= nodes.size; ) {
    const node = nodes.get(id);
    if (node === undefined) break;
    path.push(node);
    id = node.parentId;
  }
  path.reverse();
  const onPath = new Set(path);
  const edits = editsOn(path);
  const seen = new Set(applyEdits(path, edits).map(({ id }) => id));
  const leftOut = new Map<string, string | null>();
  for (const node of nodes.values()) {
    if (node.type !== "context_edit" && (seen.has(node.id) || !onPath.has(node))) continue;
    const moved = node.parentId === null ? undefined : leftOut.get(node.parentId);
    leftOut.set(node.id, moved === undefined ? node.parentId : moved);
  }
  return { edits, leftOut, next: nextOnes(path, leftOut) };
}

/** An entry as models see it; without what an import stored of it, which is of the text before the edit. */
export function withEdit(entry: Entry, { edits }: EditedEntries): Entry {
  const edit = edits.get(entry.id);
  if (edit === undefined || edit.message === null) return entry;
  const { foreign: _foreign, ...bare } = entry as Entry & { readonly foreign?: unknown };
  return applyEdits([bare as Entry], new Map([[entry.id, edit]]))[0] ?? entry;
}

function nextOnes(path: readonly Entry[], leftOut: ReadonlyMap<string, string | null>): ReadonlyMap<string, string> {
  const next = new Map<string, string>();
  let last: string | null = null;
  for (const { id } of path.toReversed()) {
    if (!leftOut.has(id)) last = id;
    else if (last !== null) next.set(id, last);
  }
  return next;
}

function withoutText(entry: Entry): Entry {
  const { id, parentId, seq, type, timestamp } = entry;
  const stamp = { id, parentId, seq, timestamp };
  if (entry.type === "context_edit") return entry;
  if (entry.type !== "message") return { ...stamp, type } as Entry;
  const { message } = entry;
  if (message.role === "tool") {
    const { toolCallId, name } = message;
    return { ...stamp, type: "message", message: { role: "tool", toolCallId, name, content: "" } };
  }
  if (message.role !== "assistant") return { ...stamp, type: "message", message: { role: message.role, content: "" } };
  const toolCalls = message.toolCalls?.map(({ id: call, name }) => ({ id: call, name, arguments: "" })) ?? [];
  return { ...stamp, type: "message", message: { role: "assistant", content: null, toolCalls } };
}
