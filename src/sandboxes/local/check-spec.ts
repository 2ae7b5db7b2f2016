import { isAbsolute, resolve } from "node:path";
import { SessionError, show } from "../../session/errors.ts";
import { SandboxError, type SandboxSpec, type ExecOptions } from "../../session/sandbox/sandbox.ts";
import { limitsProblem } from "../command-limits.ts";
import { isIsolationWord } from "./isolation.ts";

/** What a spec can say, whatever the backend makes of it. */
export const SPEC_KEYS: ReadonlySet<string> = new Set([
  "workingDir",
  "env",
  "allowPaths",
  "isolation",
  "network",
  "limits",
  "image",
  "entrypoint",
  "timeoutMs",
]);

/**
 * A frozen copy of the spec with an absolute working directory, so that it means the same in another process.
 *
 * @throws {SessionError} `INVALID_OPTION` for a value that is none; a `SandboxError` `unsupported` for what only other
 * backends have.
 */
export function checkSpec(spec: SandboxSpec): SandboxSpec {
  if (typeof spec !== "object" || spec === null) throw invalid("is not an object");
  for (const key of Object.keys(spec)) {
    if (!SPEC_KEYS.has(key)) throw invalid(`has no ${show(key)}; known are ${[...SPEC_KEYS].join(", ")}`);
  }
  for (const key of ["image", "entrypoint"] as const) {
    if (spec[key] !== undefined) {
      throw new SandboxError("unsupported", `The local sandbox has no ${key}; leave it out, or use a remote backend.`);
    }
  }
  const { workingDir, env, allowPaths, isolation, network, limits, timeoutMs } = spec;
  if (isolation !== undefined && !isIsolationWord(isolation)) {
    throw new SandboxError(
      "unsupported",
      `The local sandbox knows no isolation ${show(isolation)}; say auto, required or off.`,
    );
  }
  if (workingDir !== undefined && !isPath(workingDir)) throw invalid("needs a path as workingDir");
  if (allowPaths !== undefined && !(Array.isArray(allowPaths) && allowPaths.every(isAbsolutePath))) {
    throw invalid("needs a list of absolute paths as allowPaths");
  }
  const envProblem = env === undefined ? null : environmentProblem(env);
  if (envProblem !== null) throw invalid(`cannot use its env: ${envProblem}`);
  if (network !== undefined && typeof network !== "boolean") throw invalid("needs true or false as network");
  const limitProblem = limits === undefined ? null : limitsProblem(limits);
  if (limitProblem !== null) throw invalid(`cannot use its limits: ${limitProblem}`);
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) throw invalid("needs a timeoutMs above 0");
  return Object.freeze({
    ...spec,
    ...(workingDir === undefined ? {} : { workingDir: resolve(workingDir) }),
    ...(env === undefined ? {} : { env: Object.freeze({ ...env }) }),
    ...(allowPaths === undefined ? {} : { allowPaths: Object.freeze([...allowPaths]) }),
    ...(limits === undefined ? {} : { limits: Object.freeze({ ...limits }) }),
  });
}

/** What is wrong with variables for a command; null when nothing is. */
export function environmentProblem(env: unknown): string | null {
  if (typeof env !== "object" || env === null || Array.isArray(env)) return "it is not an object of texts";
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name)) return `${show(name)} cannot name a variable`;
    if (typeof value !== "string") return `the variable ${show(name)} is not a text`;
    if (value.includes("\0")) return `the variable ${show(name)} holds a NUL character`;
  }
  return null;
}

/** Whether a number can limit the time of a command. */
export function isTimeout(timeoutMs: unknown): boolean {
  return typeof timeoutMs === "number" && Number.isFinite(timeoutMs) && timeoutMs > 0;
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

function isAbsolutePath(value: unknown): boolean {
  return isPath(value) && isAbsolute(value);
}

function invalid(problem: string): SessionError {
  return new SessionError("INVALID_OPTION", `The spec of a local sandbox ${problem}.`);
}

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
