import { isAbsolute, resolve } from "node:path";
import { SessionError, show } from "../../session/errors.ts";
import { SandboxError, type SandboxSpec, type ExecOptions } from "../../session/sandbox/sandbox.ts";
import { limitsProblem } from "../command-limits.ts";
import { isIsolationMode } from "./isolation.ts";

/** The fields of a spec, over all backends. */
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
 * A frozen copy of the spec with an absolute working directory, so that it is valid in other processes.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid value; {SandboxError} `unsupported` for options of other backends.
 */
export function checkSpec(spec: SandboxSpec): SandboxSpec {
  if (typeof spec !== "object" || spec === null) throw invalidSpec("is not an object");
  for (const key of Object.keys(spec)) {
    if (!SPEC_KEYS.has(key)) throw invalidSpec(`has no ${show(key)}; known are ${[...SPEC_KEYS].join(", ")}`);
  }
  for (const key of ["image", "entrypoint"] as const) {
    if (spec[key] !== undefined) {
      throw new SandboxError("unsupported", `The local sandbox has no ${key}; leave it out, or use a remote backend.`);
    }
  }
  const { workingDir, env, allowPaths, isolation, network, limits, timeoutMs } = spec;
  if (isolation !== undefined && !isIsolationMode(isolation)) {
    throw new SandboxError(
      "unsupported",
      `The local sandbox does not support the isolation ${show(isolation)}; use auto, required or off.`,
    );
  }
  if (workingDir !== undefined && !isPath(workingDir)) throw invalidSpec("needs a path as workingDir");
  if (allowPaths !== undefined && !(Array.isArray(allowPaths) && allowPaths.every(isAbsolutePath))) {
    throw invalidSpec("needs a list of absolute paths as allowPaths");
  }
  const envProblem = env === undefined ? null : environmentProblem(env);
  if (envProblem !== null) throw invalidSpec(`cannot use its env: ${envProblem}`);
  if (network !== undefined && typeof network !== "boolean") throw invalidSpec("needs true or false as network");
  const limitProblem = limits === undefined ? null : limitsProblem(limits);
  if (limitProblem !== null) throw invalidSpec(`cannot use its limits: ${limitProblem}`);
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) throw invalidSpec("needs a timeoutMs above 0");
  return Object.freeze({
    ...spec,
    ...(workingDir === undefined ? {} : { workingDir: resolve(workingDir) }),
    ...(env === undefined ? {} : { env: Object.freeze({ ...env }) }),
    ...(allowPaths === undefined ? {} : { allowPaths: Object.freeze([...allowPaths]) }),
    ...(limits === undefined ? {} : { limits: Object.freeze({ ...limits }) }),
  });
}

/** Why environment variables are invalid; null if they are valid. */
export function environmentProblem(env: unknown): string | null {
  if (typeof env !== "object" || env === null || Array.isArray(env)) return "it is not an object of texts";
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name)) return `${show(name)} cannot name a variable`;
    if (typeof value !== "string") return `the variable ${show(name)} is not a text`;
    if (value.includes("\0")) return `the variable ${show(name)} holds a NUL character`;
  }
  return null;
}

/** Whether a value is a valid timeout. */
export function isTimeout(timeoutMs: unknown): boolean {
  return typeof timeoutMs === "number" && Number.isFinite(timeoutMs) && timeoutMs > 0;
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

function isAbsolutePath(value: unknown): boolean {
  return isPath(value) && isAbsolute(value);
}

function invalidSpec(problem: string): SessionError {
  return new SessionError("INVALID_OPTION", `The spec of a local sandbox ${problem}.`);
}

const SHELL = "/bin/sh";

/** The program and arguments of a command. @throws {SandboxError} `os_error` for an invalid command. */
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

/** @throws {SandboxError} `os_error` or `unsupported` for invalid options. */
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
