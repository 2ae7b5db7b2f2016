import { show } from "../../session/errors.ts";
import { type ExecOptions, SandboxError } from "../../session/sandbox/sandbox.ts";
import { environmentProblem, isTimeout } from "./check-spec.ts";

const SHELL = "/bin/sh";

/** The program and arguments of a command. @throws {SandboxError} `os_error` for one that no system can start. */
export function checkCommand(command: string | readonly string[]): readonly [string, ...string[]] {
  const list = typeof command === "string" ? [SHELL, "-c", command] : command;
  const last = Array.isArray(list) ? list.at(typeof command === "string" ? -1 : 0) : undefined;
  if (typeof last !== "string" || last.trim() === "") {
    throw new SandboxError("os_error", "An empty command cannot be run; give a text, or a program and its arguments.");
  }
  for (const part of list) {
    if (typeof part !== "string" || part.includes("\0")) {
      throw new SandboxError(
        "os_error",
        `The command cannot be run with ${show(part)}, which is not a text without NUL.`,
      );
    }
  }
  return list as readonly [string, ...string[]];
}

/** @throws {SandboxError} `os_error` or `unsupported` for options that no command can be run with. */
export function checkExecOptions({ env, stdin, timeoutMs }: ExecOptions): void {
  const problem = env === undefined ? null : environmentProblem(env);
  if (problem !== null) throw new SandboxError("os_error", `The command cannot be run with its env: ${problem}.`);
  if (stdin !== undefined && typeof stdin !== "string" && !(stdin instanceof Uint8Array)) {
    throw new SandboxError("unsupported", "The stdin of a command is neither a text nor bytes.");
  }
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) {
    throw new SandboxError(
      "unsupported",
      `A command cannot be limited to ${show(timeoutMs)} ms; give a number above 0.`,
    );
  }
}
