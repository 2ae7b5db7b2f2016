import type { TreeNodeView } from "skein/client";

/** What a node is, as far as a picture of the tree tells nodes apart. */
export const NODE_KINDS = [
  "user",
  "assistant",
  "tool",
  "system",
  "compaction",
  "summary",
  "settings",
  "other",
] as const;

/** One kind of node. */
export type NodeKind = (typeof NODE_KINDS)[number];

/** The names of the kinds, as a legend says them. */
export const KIND_NAMES: Readonly<Record<NodeKind, string>> = {
  user: "User",
  assistant: "Assistant",
  tool: "Tool result",
  system: "System",
  compaction: "Compaction",
  summary: "Branch summary",
  settings: "Settings",
  other: "Other entry",
};

/** The kind of a node. */
export function kindOf({ type, role }: Pick<TreeNodeView, "type" | "role">): NodeKind {
  switch (type) {
    case "message":
      return role ?? "other";
    case "compaction":
      return "compaction";
    case "branch_summary":
      return "summary";
    case "model_change":
    case "thinking_level_change":
    case "variables":
      return "settings";
    default:
      return "other";
  }
}

/** What a node says or does, in a few words. */
export function captionOf(node: TreeNodeView): string {
  // The marks of Markdown take room, and say nothing in a line.
  if (node.preview !== "") return node.preview.replace(/\*\*|^#+ |`/g, "") || node.preview;
  if (node.toolCalls.length > 0) return `calls ${node.toolCalls.join(", ")}`;
  if (node.type === "variables") return "variables changed";
  return node.type === "message" ? "(no text)" : node.type.replaceAll("_", " ");
}
