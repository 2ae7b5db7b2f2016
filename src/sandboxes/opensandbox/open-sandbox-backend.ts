import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
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
import { LANGUAGES, RemotePlace } from "./remote-place.ts";
import { openScript } from "./remote-script.ts";
import { RemoteShell } from "./remote-shell.ts";
import { isRemoteId, snapshotName } from "./remote-snapshots.ts";
import { checkRemoteSpec } from "./remote-spec.ts";

/**
 * Sandboxes of an OpenSandbox server, through its own client.
 *
 * - `open` starts a sandbox of `spec.image`, `close` ends it. With `keep` it runs on, and `attach` finds it by its id.
 * - The root is `spec.workingDir`, which is made, else the directory `workspace` in the home of the sandbox's user.
 * - The image needs a POSIX shell and the usual small programs: `env, base64, head, tail, tr, stat, readlink, grep, find`
 *   and, for snapshots, `tar`. `capabilities.languages` names the interpreters that it has.
 * - Paths are confined by following their links in the sandbox right before each step; what keeps a command from
 *   everything else is the server's container.
 * - What a command writes goes to the sandbox's disk first, and only what is kept of it comes over the network.
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
        // It belongs to whoever left it, and may be looked for again.
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
    const place = workingDir === null ? "its directories" : show(workingDir);
    throw new SandboxError(
      "os_error",
      `The sandbox ${remote.id} cannot make ${place}; give another workingDir or image.`,
    );
  }
  if (timeoutSeconds !== null && timeoutSeconds !== undefined) await remote.renew(timeoutSeconds).catch(() => {});
  return new RemotePlace({
    remote,
    spec,
    options,
    roots: [root, ...rest.slice(0, allowPaths.length)].map(decoded),
    scratch: decoded(scratch),
    programs: rest.slice(allowPaths.length),
  });
}

/** The path that `pwd` printed, without the end of the line. */
function decoded(path: string): string {
  return Buffer.from(path, "base64").toString("utf8").replace(/\n$/, "");
}
