import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { SessionError } from "../session/errors.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

/** The longest text that one call writes. */
const WRITTEN_BYTES_MAX: number = 16 * 1024 * 1024;

/** Writes a whole file. It is idempotent, so a recovered run may repeat it. */
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
    const sizeBytes = Buffer.byteLength(content);
    if (sizeBytes > WRITTEN_BYTES_MAX) {
      const message = `The content has ${sizeBytes} bytes, and one call writes at most ${WRITTEN_BYTES_MAX}; use run_shell_command.`;
      throw new SessionError("INVALID_OPTION", message);
    }
    const sandbox = await context.requireSandbox();
    context.signal.throwIfAborted();
    await sandbox.writeFile(path, content);
    return { path, size_bytes: sizeBytes };
  },
});
