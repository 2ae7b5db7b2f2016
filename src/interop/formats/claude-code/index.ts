import { basename, join, sep } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { programHome } from "../program-home.ts";
import { ClaudeCodeReader } from "./read-claude-code.ts";
import { writeClaudeCode } from "./write-claude-code.ts";

/** How many lines are checked: the first lines of a file may be of kinds that other programs write as well. */
const LINES_CHECKED = 20;

/** The sessions of Claude Code. */
export const claudeCode: ForeignFormat = {
  name: "claude-code",
  title: "Claude Code",
  unit: "lines",
  detects(start) {
    return firstObjects(start, LINES_CHECKED).some(
      (line) =>
        ("parentUuid" in line && typeof line.uuid === "string") ||
        (line.type === "summary" && typeof line.leafUuid === "string") ||
        (line.type === "queue-operation" && typeof line.sessionId === "string") ||
        line.type === "file-history-snapshot",
    );
  },
  home,
  isSessionFile,
  read: (sink, path) => new ClaudeCodeReader(sink, path),
  write: writeClaudeCode,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  handoff({ cwd, foreignId }) {
    const path = join(home(), cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), `${foreignId}.jsonl`);
    return { path, commands: [["claude", "--resume", foreignId]] };
  },
};

/** The folder of sub-agents also holds other files, such as the journal of a workflow. */
function isSessionFile(path: string): boolean {
  const folders = path.split(sep);
  if (!path.endsWith(".jsonl") || folders.includes("memory")) return false;
  return !folders.includes("subagents") || basename(path).startsWith("agent-");
}

function home(): string {
  return join(programHome("CLAUDE_CONFIG_DIR", ".claude"), "projects");
}
