import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { pathKey } from "./workspace-path.ts";

/** Maximum items in one result. */
export const LISTED_MAX = 500;

/** Lists a directory, up to a limit. */
export const listWorkspaceFiles: Tool = defineTool({
  name: "list_workspace_files",
  description: `Lists the items of a directory of the workspace, at most ${LISTED_MAX} of them, sorted by path.`,
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", minLength: 1, description: "The directory (default: the workspace's root)." },
      recursive: { type: "boolean", description: "Also lists what is in the directories below it (default: false)." },
    },
    additionalProperties: false,
  },
  idempotent: true,
  effects: "reads",
  sandboxed: true,
  resourceKey: ({ path = "." }) => pathKey(path),
  async execute({ path = ".", recursive = false }, context) {
    const sandbox = await context.requireSandbox();
    // One more than is shown, to know whether there are more.
    const found = await sandbox.list(path, { recursive, limit: LISTED_MAX + 1 });
    const entries = found.slice(0, LISTED_MAX).map((item) => ({
      path: item.path,
      type: item.type,
      ...(item.type === "file" && { size_bytes: item.sizeBytes }),
    }));
    if (found.length <= LISTED_MAX) return { entries };
    const hint = recursive
      ? "List a directory further down, or without recursive."
      : "Use run_shell_command to see the rest.";
    return { entries, truncated: true, hint: `Only the first ${LISTED_MAX} items are listed. ${hint}` };
  },
});
