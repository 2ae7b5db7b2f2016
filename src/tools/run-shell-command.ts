import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool } from "../agent/tools/tool.ts";
import type { ExecResult } from "../session/sandbox/sandbox.ts";

/** The longest time that a model may give a command. */
export const TIMEOUT_PARAMETER = {
  type: "integer",
  minimum: 1,
  maximum: 3_600_000,
  description: "After how many milliseconds it is ended, with everything it started.",
} as const;

/** Runs a command in the sandbox's shell. It may change any file, so no other call runs at the same time. */
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

/** Maximum characters of each output stream in a result; of a longer one, the beginning and the end are kept. */
export const STREAM_CHARACTERS_MAX = 30_000;

/** The result of a command as sent to a model. */
interface CommandAnswer {
  readonly exit_code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated?: true;
}

/** Converts a command's result for a model, and shortens long output. */
export function answerOf({ exitCode, stdout, stderr, truncated }: ExecResult): CommandAnswer {
  const cut = truncated || stdout.length > STREAM_CHARACTERS_MAX || stderr.length > STREAM_CHARACTERS_MAX;
  return {
    exit_code: exitCode,
    stdout: keepEnds(stdout),
    stderr: keepEnds(stderr),
    ...(cut ? { truncated: true } : {}),
  };
}

function keepEnds(text: string): string {
  if (text.length <= STREAM_CHARACTERS_MAX) return text;
  const half = STREAM_CHARACTERS_MAX / 2;
  // Do not split a surrogate pair.
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, "");
  const tail = text.slice(-half).replace(/^[\udc00-\udfff]/, "");
  return `${head}\n[… ${text.length - head.length - tail.length} characters left out …]\n${tail}`;
}
