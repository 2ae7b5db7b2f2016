import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

/** Writes a whole file. Writing the same again changes nothing, so a recovered run may repeat it. */
export const writeWorkspaceFile: Tool = defineTool({
  name: "write_workspace_file",
  description:
    "Writes a text file in the workspace, with the directories above it; replaces what was there. " +
    "To change a part of a file, use edit_workspace_file.",
  parameters: {
    type: "object",
    properties: { path: PATH_PARAMETER, content: { type: "string", description: "The whole new text of the file." } },
    required: ["path", "content"],
    additionalProperties: false,
  },
  idempotent: true,
  effects: "writes",
  sandboxed: true,
  resourceKey: ({ path }) => pathKey(path),
  async execute({ path, content }, context) {
    const sandbox = await context.requireSandbox();
    context.signal.throwIfAborted();
    await sandbox.writeFile(path, content);
    return { path, size_bytes: Buffer.byteLength(content) };
  },
});
