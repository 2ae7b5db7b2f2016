import { posix } from "node:path";
import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { show, SessionError } from "../../session/errors.ts";
import {
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxReach,
  type SandboxSpec,
} from "../../session/sandbox/sandbox.ts";
import {
  connectRemote,
  createRemote,
  deleteRemoteSnapshot,
  type OpenSandboxOptions,
  type RemoteSandbox,
} from "./opensandbox-client.ts";
import { LANGUAGES, OpenSandbox } from "./open-sandbox.ts";
import { openScript } from "./remote-script.ts";
import { RemoteShell } from "./remote-shell.ts";
import { isRemoteId, snapshotName } from "./remote-snapshots.ts";
import { limitsProblem } from "../command-limits.ts";
import { environmentProblem, isTimeout, SPEC_KEYS } from "../local/check-spec.ts";
import { isIsolationMode } from "../local/isolation.ts";

/**
 * Sandboxes of an OpenSandbox server, through its own client.
 *
 * - `open` starts a sandbox of `spec.image`, `close` ends it. With `keep` it runs on, and `attach` finds it by its id.
 * - The root is `spec.workingDir`, which is made, else the directory `workspace` in the home of the sandbox's user.
 * - The image needs a POSIX shell and the usual small programs: `env, base64, head, tail, tr, stat, readlink, grep, find`
 *   and, for snapshots, `tar`. `capabilities.languages` names the interpreters that it has.
 * - Paths are confined by resolving their links in the sandbox right before each step; commands are confined only by the
 *   server's container.
 * - Output of a command is written to the sandbox's disk, and only the part that is kept is sent over the network.
 */
export function openSandboxBackend(options: OpenSandboxOptions = {}): SandboxBackend {
  return {
    async reach(spec: SandboxSpec): Promise<SandboxReach> {
      checkRemoteSpec(spec);
      return { directory: null, isolated: true, network: true };
    },

    async open(spec: SandboxSpec): Promise<Sandbox> {
      const checked = checkRemoteSpec(spec);
      const remote = await createRemote(options, checked);
      try {
        return await enter(remote, checked, options);
      } catch (error) {
        await remote.kill().catch(() => {});
        await remote.disconnect();
        throw error;
      }
    },

    async attach(id: string, spec: SandboxSpec): Promise<Sandbox> {
      const checked = checkRemoteSpec(spec);
      if (!isRemoteId(id)) {
        throw new SandboxError("file_not_found", `There is no OpenSandbox sandbox ${show(id)}; open a new one.`);
      }
      const remote = await connectRemote(options, id);
      try {
        return await enter(remote, checked, options);
      } catch (error) {
        // Disconnect only: the sandbox was left by someone else, who may attach to it again.
        await remote.disconnect();
        throw error;
      }
    },

    async deleteSnapshot(snapshot: JsonObject): Promise<boolean> {
      const { id } = snapshotName(snapshot);
      try {
        await deleteRemoteSnapshot(options, id);
        return true;
      } catch (error) {
        if (error instanceof SandboxError && error.kind === "file_not_found") return false;
        throw error;
      }
    },
  };
}

async function enter(remote: RemoteSandbox, spec: SandboxSpec, options: OpenSandboxOptions): Promise<Sandbox> {
  const { timeoutSeconds } = options;
  const programs = LANGUAGES.map(({ program }) => program);
  const { workingDir = null, allowPaths = [] } = spec;
  const script = openScript(workingDir, allowPaths, uuidv7(), programs);
  const [kind, root = "", scratch = "", ...rest] = await new RemoteShell(remote).ask(script);
  if (kind !== "opened") {
    const what = workingDir === null ? "its directories" : show(workingDir);
    throw new SandboxError(
      "os_error",
      `The sandbox ${remote.id} cannot make ${what}; give another workingDir or image.`,
    );
  }
  if (timeoutSeconds !== null && timeoutSeconds !== undefined) await remote.renew(timeoutSeconds).catch(() => {});
  return new OpenSandbox({
    remote,
    spec,
    options,
    roots: [root, ...rest.slice(0, allowPaths.length)].map(decoded),
    scratch: decoded(scratch),
    programs: rest.slice(allowPaths.length),
  });
}

/** Decodes the path that `pwd` printed, without its newline. */
function decoded(path: string): string {
  return Buffer.from(path, "base64").toString("utf8").replace(/\n$/, "");
}

/**
 * A frozen copy of the spec.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid value; {SandboxError} `unsupported` for options of other backends.
 */
function checkRemoteSpec(spec: SandboxSpec): SandboxSpec {
  const { workingDir, env, allowPaths, isolation, network, limits, image, entrypoint, timeoutMs } = spec;
  for (const key of Object.keys(spec)) if (!SPEC_KEYS.has(key)) throw invalidRemoteSpec(`has no ${show(key)}`);
  // The server isolates every sandbox, whatever the mode.
  if (isolation !== undefined && !isIsolationMode(isolation)) {
    throw new SandboxError(
      "unsupported",
      `The opensandbox backend does not support the isolation ${show(isolation)}; leave it out.`,
    );
  }
  if (network !== undefined && network !== true) {
    throw new SandboxError("unsupported", "The opensandbox backend cannot disable the network; its server decides.");
  }
  const limitProblem = limits === undefined ? null : limitsProblem(limits);
  if (limitProblem !== null) throw invalidRemoteSpec(`cannot use its limits: ${limitProblem}`);
  const foreign = Object.keys(limits ?? {}).find((name) => name !== "seconds");
  if (foreign !== undefined) {
    throw new SandboxError("unsupported", `The opensandbox backend has no limit ${foreign}; its server sets that one.`);
  }
  if (workingDir !== undefined && !isAbsolute(workingDir))
    throw invalidRemoteSpec("needs an absolute path as workingDir");
  if (allowPaths !== undefined && !(Array.isArray(allowPaths) && allowPaths.every(isAbsolute))) {
    throw invalidRemoteSpec("needs a list of absolute paths as allowPaths");
  }
  const problem = env === undefined ? null : environmentProblem(env);
  if (problem !== null) throw invalidRemoteSpec(`cannot use its env: ${problem}`);
  if (image !== undefined && (typeof image !== "string" || image === ""))
    throw invalidRemoteSpec("needs a name as image");
  if (
    entrypoint !== undefined &&
    !(Array.isArray(entrypoint) && entrypoint.every((part) => typeof part === "string"))
  ) {
    throw invalidRemoteSpec("needs a list of texts as entrypoint");
  }
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) throw invalidRemoteSpec("needs a timeoutMs above 0");
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

function invalidRemoteSpec(problem: string): SessionError {
  return new SessionError("INVALID_OPTION", `The spec of an OpenSandbox sandbox ${problem}.`);
}
