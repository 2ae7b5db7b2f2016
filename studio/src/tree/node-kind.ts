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
  if (node.role === "tool") return resultCaption(node.preview);
  if (node.preview !== "") return node.preview.replace(/\*\*|^#+ |`/g, "") || node.preview;
  if (node.toolCalls.length > 0) return `calls ${node.toolCalls.join(", ")}`;
  if (node.type === "variables") return "variables changed";
  return node.type === "message" ? "(no text)" : node.type.replaceAll("_", " ");
}

const TEXT = /"((?:[^"\\]|\\.)*)/.source;
const EXIT_CODE = /^\{"exit_code":(-?\d+)/;
const OUTPUT = new RegExp(`^[^,]*,"stdout":${TEXT}`);
const EXISTS = /^\{(?:"path":[^,]*,)?"exists":(true|false)/;
const MESSAGE = new RegExp(`^\\{"ok":false.*"message":${TEXT}`);

/** The result of one of our tools in a few words; the preview is only the beginning of its JSON. */
function resultCaption(preview: string): string {
  if (preview === "") return "(no text)";
  const code = EXIT_CODE.exec(preview)?.[1];
  if (code !== undefined) {
    const output = plain(OUTPUT.exec(preview)?.[1] ?? "");
    if (code === "0") return output || "exit code 0";
    return `exit code ${code}${output === "" ? "" : `: ${output}`}`;
  }
  if (preview.startsWith('{"entries":[')) return "a list of files";
  const exists = EXISTS.exec(preview)?.[1];
  if (exists !== undefined) return exists === "true" ? "the path exists" : "the path does not exist";
  const message = MESSAGE.exec(preview)?.[1];
  return message === undefined ? preview : plain(message);
}

/** The first line of a text in JSON, which may be cut anywhere. */
function plain(json: string): string {
  const [line = ""] = json.split("\\n");
  return line
    .replace(/\\[rtbf]/g, " ")
    .replace(/\\(["\\/])/g, "$1")
    .trim();
}
