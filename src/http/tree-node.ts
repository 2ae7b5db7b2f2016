import { cutText } from "../internal/cut-text.ts";
import { type Entry, isNode } from "../session/log/entry.ts";
import { textOf } from "../session/message.ts";
import type { TreeNodeView } from "./tree-wire.ts";

const PREVIEW_CHARACTERS = 120;

/** The tree node of an entry, without label and checkpoints; null for a fact, which is not part of the tree. */
export function treeNodeOf(entry: Entry): TreeNodeView | null {
  if (!isNode(entry)) return null;
  const { id, parentId, seq, type, timestamp } = entry;
  const message = entry.type === "message" ? entry.message : null;
  return {
    id,
    parentId,
    seq,
    type,
    timestamp,
    role: message?.role ?? null,
    preview: previewOf(entry),
    label: null,
    checkpoints: [],
    toolCalls: message?.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => name) : [],
  };
}

function previewOf(entry: Entry): string {
  // Does not match single spaces, which are the most frequent: a tree has thousands of nodes.
  const line = cutText(textOfEntry(entry), 0, 4 * PREVIEW_CHARACTERS)
    .replace(/\s{2,}|[^\S ]/g, " ")
    .trim();
  // Counts code points, so that no surrogate pair is cut in half.
  let end = 0;
  for (let count = 0; count < PREVIEW_CHARACTERS && end < line.length; count++) {
    end += (line.codePointAt(end) as number) > 0xffff ? 2 : 1;
  }
  return end < line.length ? `${line.slice(0, end)}…` : line;
}

function textOfEntry(entry: Entry): string {
  switch (entry.type) {
    case "message":
      return textOf(entry.message.content);
    case "custom_message":
      return textOf(entry.content);
    case "compaction":
    case "branch_summary":
      return entry.summary;
    case "model_change":
      return `${entry.provider}/${entry.modelId}`;
    case "thinking_level_change":
      return entry.thinkingLevel;
    case "custom":
      return entry.customType;
    case "setup":
      return entry.agent;
    default:
      return "";
  }
}
