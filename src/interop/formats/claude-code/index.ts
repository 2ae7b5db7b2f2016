import { join } from "node:path";
import type { ForeignFormat } from "../foreign-format.ts";
import { isUuid, uuidFrom } from "../foreign-id.ts";
import { firstObjects } from "../foreign-values.ts";
import { claudeCodeFiles } from "./claude-code-files.ts";
import { ClaudeCodeReader } from "./read-claude-code.ts";
import { writeClaudeCode } from "./write-claude-code.ts";

/** How many lines are checked: the first lines of a file may be of kinds that other programs write as well. */
const LINES_CHECKED = 20;

/** The sessions of Claude Code. */
export const claudeCode: ForeignFormat = {
  ...claudeCodeFiles,
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
  read: (sink, path) => new ClaudeCodeReader(sink, path),
  write: writeClaudeCode,
  isSessionId: isUuid,
  sessionIdFrom: uuidFrom,
  handoff({ cwd, foreignId }) {
    const path = join(claudeCodeFiles.home(), cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), `${foreignId}.jsonl`);
    return { path, commands: [["claude", "--resume", foreignId]] };
  },
};
