import type { TreeNodeView } from "skein/client";

/** The kinds of nodes that the tree distinguishes. */
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

/** The names of the kinds, for the legend. */
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
    case "setup":
      return "settings";
    default:
      return "other";
  }
}

/** The caption of a node, in a few words. */
export function captionOf(node: TreeNodeView): string {
  // Markdown syntax is removed to save space.
  if (node.preview !== "") return node.preview.replace(/\*\*|^#+ |`/g, "") || node.preview;
  if (node.toolCalls.length > 0) return `calls ${node.toolCalls.join(", ")}`;
  if (node.type === "variables") return "variables changed";
  return node.type === "message" ? "(no text)" : node.type.replaceAll("_", " ");
}
