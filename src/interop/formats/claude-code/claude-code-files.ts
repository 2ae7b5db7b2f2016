import { basename, join, sep } from "node:path";
import type { ProgramFiles } from "../foreign-format.ts";
import { programHome } from "../program-home.ts";

/** Where Claude Code keeps its sessions. */
export const claudeCodeFiles: ProgramFiles = {
  name: "claude-code",
  title: "Claude Code",
  home: () => join(programHome("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
  isSessionFile,
};

/** The folder of sub-agents also holds other files, such as the journal of a workflow. */
function isSessionFile(path: string): boolean {
  const folders = path.split(sep);
  if (!path.endsWith(".jsonl") || folders.includes("memory")) return false;
  return !folders.includes("subagents") || basename(path).startsWith("agent-");
}
