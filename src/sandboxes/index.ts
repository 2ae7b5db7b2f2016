import "./register-built-in.ts";

export { registerBuiltInTools } from "../agent/tools/offer-tools.ts";
export { localBackend } from "./local/index.ts";
export { type OpenSandboxOptions, openSandboxBackend } from "./opensandbox/index.ts";
export {
  PersistentSandboxRegistry,
  type PersistentSandboxRegistryOptions,
  type RecordedSandbox,
  type SandboxRecord,
} from "./persistent-sandbox-registry.ts";
export type { SandboxPlacement } from "../session/log/header.ts";
export { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
export { hideFromSandboxes } from "../session/sandbox/sandbox-hidden-paths.ts";
export {
  type ExecOptions,
  type ExecResult,
  type FileChange,
  type FileChanges,
  type Sandbox,
  type SandboxBackend,
  type SandboxCapabilities,
  SandboxError,
  type SandboxFailure,
  type SandboxFile,
  type SandboxLimits,
  type SandboxReach,
  type SandboxSpec,
} from "../session/sandbox/sandbox.ts";
export { editWorkspaceFile } from "../tools/edit-workspace-file.ts";
export { listWorkspaceFiles } from "../tools/list-workspace-files.ts";
export { readWorkspaceFile } from "../tools/read-workspace-file.ts";
export { runCode } from "../tools/run-code.ts";
export { runShellCommand } from "../tools/run-shell-command.ts";
export { workspacePathExists } from "../tools/workspace-path-exists.ts";
export { WORKSPACE_TOOL_NAMES, workspaceTools } from "../tools/workspace-tools.ts";
export { writeWorkspaceFile } from "../tools/write-workspace-file.ts";
