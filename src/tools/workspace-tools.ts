import type { Tool } from "../agent/tools/tool.ts";
import { editWorkspaceFile } from "./edit-workspace-file.ts";
import { listWorkspaceFiles } from "./list-workspace-files.ts";
import { readWorkspaceFile } from "./read-workspace-file.ts";
import { runCode } from "./run-code.ts";
import { runShellCommand } from "./run-shell-command.ts";
import { workspacePathExists } from "./workspace-path-exists.ts";
import { writeWorkspaceFile } from "./write-workspace-file.ts";

/** The tools that act on a session's sandbox, in the order in which models see them. */
export const workspaceTools: readonly Tool[] = Object.freeze([
  runShellCommand,
  readWorkspaceFile,
  writeWorkspaceFile,
  editWorkspaceFile,
  listWorkspaceFiles,
  workspacePathExists,
  runCode,
]);

/** The names of the workspace tools. */
export const WORKSPACE_TOOL_NAMES: readonly string[] = Object.freeze(workspaceTools.map(({ schema }) => schema.name));
