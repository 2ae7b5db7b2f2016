export { editWorkspaceFile } from "./edit-workspace-file.ts";
export { listWorkspaceFiles } from "./list-workspace-files.ts";
export { readWorkspaceFile } from "./read-workspace-file.ts";
export { runCode } from "./run-code.ts";
export { runShellCommand } from "./run-shell-command.ts";
export type { SkeinConfig } from "./skein-config.ts";
export { workspacePathExists } from "./workspace-path-exists.ts";
export { WORKSPACE_TOOL_NAMES, workspaceTools } from "./workspace-tools.ts";
export { writeWorkspaceFile } from "./write-workspace-file.ts";
