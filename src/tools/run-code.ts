import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import { answerOf, TIMEOUT_PARAMETER } from "./run-shell-command.ts";

/** Runs a short program in the sandbox. It may change any file, so no other call runs at the same time. */
export const runCode: Tool = defineTool({
  name: "run_code",
  description:
    "Runs a program given as text in the workspace and returns its exit code, standard output and standard error. " +
    "Print what you want to see; nothing but files carries over to the next call.",
  parameters: {
    type: "object",
    properties: {
      language: { type: "string", minLength: 1, description: 'The language, such as "python" or "javascript".' },
      code: { type: "string", minLength: 1, description: "The whole program." },
      timeout_ms: TIMEOUT_PARAMETER,
    },
    required: ["language", "code"],
    additionalProperties: false,
  },
  exclusive: true,
  idempotent: false,
  effects: "commands",
  sandboxed: true,
  async execute({ language, code, timeout_ms: timeoutMs }, context) {
    const sandbox = await context.requireSandbox();
    const options = { signal: context.signal, ...(timeoutMs !== undefined && { timeoutMs }) };
    return answerOf(await sandbox.runCode(language, code, options));
  },
});
