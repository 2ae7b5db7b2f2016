import { posix } from "node:path";
import { SessionError, show } from "../../session/errors.ts";
import { SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { limitsProblem } from "../command-limits.ts";
import { environmentProblem, isTimeout } from "../local/check-spec.ts";
import { isIsolationWord } from "../local/isolation.ts";

const KEYS: ReadonlySet<string> = new Set([
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
 * A frozen copy of the spec.
 *
 * @throws {SessionError} `INVALID_OPTION` for a value that is none; a `SandboxError` `unsupported` for what only other
 * backends have.
 */
export function checkRemoteSpec(spec: SandboxSpec): SandboxSpec {
  const { workingDir, env, allowPaths, isolation, network, limits, image, entrypoint, timeoutMs } = spec;
  for (const key of Object.keys(spec)) if (!KEYS.has(key)) throw invalid(`has no ${show(key)}`);
  // Its server isolates every sandbox, whatever the word.
  if (isolation !== undefined && !isIsolationWord(isolation)) {
    throw new SandboxError(
      "unsupported",
      `The opensandbox backend knows no isolation ${show(isolation)}; leave it out.`,
    );
  }
  if (network !== undefined && network !== true) {
    throw new SandboxError("unsupported", "The opensandbox backend cannot take the network away; its server decides.");
  }
  const limitProblem = limits === undefined ? null : limitsProblem(limits);
  if (limitProblem !== null) throw invalid(`cannot use its limits: ${limitProblem}`);
  const foreign = Object.keys(limits ?? {}).find((name) => name !== "seconds");
  if (foreign !== undefined) {
    throw new SandboxError("unsupported", `The opensandbox backend has no limit ${foreign}; its server sets that one.`);
  }
  if (workingDir !== undefined && !isAbsolute(workingDir)) throw invalid("needs an absolute path as workingDir");
  if (allowPaths !== undefined && !(Array.isArray(allowPaths) && allowPaths.every(isAbsolute))) {
    throw invalid("needs a list of absolute paths as allowPaths");
  }
  const problem = env === undefined ? null : environmentProblem(env);
  if (problem !== null) throw invalid(`cannot use its env: ${problem}`);
  if (image !== undefined && (typeof image !== "string" || image === "")) throw invalid("needs a name as image");
  if (
    entrypoint !== undefined &&
    !(Array.isArray(entrypoint) && entrypoint.every((part) => typeof part === "string"))
  ) {
    throw invalid("needs a list of texts as entrypoint");
  }
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) throw invalid("needs a timeoutMs above 0");
  return Object.freeze({
    ...spec,
    ...(workingDir === undefined ? {} : { workingDir: posix.resolve(workingDir) }),
    ...(env === undefined ? {} : { env: Object.freeze({ ...env }) }),
    ...(allowPaths === undefined ? {} : { allowPaths: Object.freeze([...allowPaths]) }),
    ...(limits === undefined ? {} : { limits: Object.freeze({ ...limits }) }),
    ...(entrypoint === undefined ? {} : { entrypoint: Object.freeze([...entrypoint]) }),
  });
}

function isAbsolute(value: unknown): boolean {
  return typeof value === "string" && posix.isAbsolute(value) && !value.includes("\0");
}

function invalid(problem: string): SessionError {
  return new SessionError("INVALID_OPTION", `The spec of an OpenSandbox sandbox ${problem}.`);
}
