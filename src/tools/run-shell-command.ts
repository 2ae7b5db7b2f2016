import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { answerOf, TIMEOUT_PARAMETER } from "./command-answer.ts";

/** Runs a command in the sandbox's shell. It may touch anything, so it runs alone. */
export const runShellCommand: Tool = defineTool({
  name: "run_shell_command",
  description:
    "Runs a command in the workspace's shell and returns its exit code, standard output and standard error. " +
    "Each call is a new shell: nothing but files carries over.",
  parameters: {
    type: "object",
    properties: {
      command: { type: "string", minLength: 1, description: "The command line." },
      cwd: { type: "string", minLength: 1, description: "The directory to run in (default: the workspace's root)." },
      timeout_ms: TIMEOUT_PARAMETER,
      stdin: { type: "string", description: "What the command reads on standard input." },
    },
    required: ["command"],
    additionalProperties: false,
  },
  exclusive: true,
  idempotent: false,
  effects: "commands",
  sandboxed: true,
  async execute({ command, cwd, timeout_ms: timeoutMs, stdin }, context) {
    const sandbox = await context.requireSandbox();
    const result = await sandbox.exec(command, {
      signal: context.signal,
      ...(cwd !== undefined && { cwd }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(stdin !== undefined && { stdin }),
    });
    return answerOf(result);
  },
});
