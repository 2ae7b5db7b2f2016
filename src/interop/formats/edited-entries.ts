import { messagesOf } from "../../session/context/context.ts";
import type { Message } from "../../session/message.ts";
import { applyEdits, type Edit, editsOn, outlineOf } from "../../session/context/edits.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";

/** The effect of the edits on the path to a leaf. */
export interface EditedEntries {
  /** The edits in force, by the entry that each changes. */
  readonly edits: ReadonlyMap<string, Edit>;
  /** From each entry that is left out, and each edit, to the node that replaces it as a parent. */
  readonly leftOut: ReadonlyMap<string, string | null>;
  /** From each entry that is left out to the next one of the path that is not, which a compaction keeps instead. */
  readonly next: ReadonlyMap<string, string>;
  /** What models see instead of the entries whose edits the other program makes itself, in the order of the path. */
  readonly kept: readonly KeptEdit[];
}

/** What models see instead of an entry; null for nothing. */
export interface KeptEdit {
  readonly targetId: string;
  readonly message: Message | null;
}

/**
 * Computes what edits change. Keeps only the ids of nodes, and of messages with calls and their results what tells which go
 * together; nothing if there is no edit. With `keeps`, edits of messages change nothing here, but are in `kept`.
 */
export async function readEdits(
  entries: AsyncIterable<Entry>,
  leafId: string | null,
  keeps: boolean,
): Promise<EditedEntries | null> {
  const nodes = new Map<string, Entry>();
  let hasEdits = false;
  for await (const entry of entries) {
    if (!isNode(entry)) continue;
    hasEdits ||= entry.type === "context_edit";
    nodes.set(entry.id, outlineOf(entry));
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
  const seen = new Map(applyEdits(path, edits).map((entry) => [entry.id, entry]));
  const isKept = (node: Entry): boolean => keeps && isEditable(node);
  const leftOut = new Map<string, string | null>();
  for (const node of nodes.values()) {
    if (node.type !== "context_edit" && (seen.has(node.id) || !onPath.has(node) || isKept(node))) continue;
    const moved = node.parentId === null ? undefined : leftOut.get(node.parentId);
    leftOut.set(node.id, moved === undefined ? node.parentId : moved);
  }
  const kept = path.filter(isKept).flatMap((node): KeptEdit[] => {
    const shown = seen.get(node.id);
    if (shown === undefined) return [{ targetId: node.id, message: null }];
    return edits.has(node.id) ? messagesOf(shown).map((message) => ({ targetId: node.id, message })) : [];
  });
  const applied = new Map([...edits].filter(([id]) => !isKept(nodes.get(id) as Entry)));
  return { edits: applied, leftOut, next: nextOnes(path, leftOut), kept };
}

/** Whether other programs can edit what models see of the entry: not summaries of branches and system messages. */
function isEditable(entry: Entry): boolean {
  return entry.type === "custom_message" || (entry.type === "message" && entry.message.role !== "system");
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
