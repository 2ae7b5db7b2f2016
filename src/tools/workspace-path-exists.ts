import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

/** Tells whether a path exists. */
export const workspacePathExists: Tool = defineTool({
  name: "workspace_path_exists",
  description: "Says whether a file or directory is at a path of the workspace.",
  parameters: {
    type: "object",
    properties: { path: PATH_PARAMETER },
    required: ["path"],
    additionalProperties: false,
  },
  idempotent: true,
  effects: "reads",
  sandboxed: true,
  resourceKey: ({ path }) => pathKey(path),
  async execute({ path }, context) {
    const sandbox = await context.requireSandbox();
    return { path, exists: await sandbox.exists(path) };
  },
});
