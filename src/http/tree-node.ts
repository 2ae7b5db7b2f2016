import { type Entry, isNode } from "../session/entry.ts";
import { textOf } from "../session/message.ts";
import type { TreeNodeView } from "./wire.ts";

const PREVIEW_CHARACTERS = 120;

/** What a session's tree says of an entry, but for its label and checkpoints; null for a fact, which hangs on nothing. */
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
  const line = saidBy(entry)
    .slice(0, 4 * PREVIEW_CHARACTERS)
    .replace(/\s+/g, " ")
    .trim();
  // By characters and not by units, so that no half of a surrogate pair is left.
  const characters = [...line];
  return characters.length > PREVIEW_CHARACTERS ? `${characters.slice(0, PREVIEW_CHARACTERS).join("")}…` : line;
}

function saidBy(entry: Entry): string {
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
    default:
      return "";
  }
}
