import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
import { SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { createRemote, type OpenSandboxOptions, type RemoteSandbox } from "./opensandbox-client.ts";
import { packScript, unpackScript } from "./remote-script.ts";
import { RemoteShell } from "./remote-shell.ts";

interface SnapshotName {
  readonly id: string;
  /** The root whose files it holds; null is the default root. */
  readonly workingDir: string | null;
}

const READY_MS_MAX = 300_000;
const POLL_MS = 200;
const COPY_MS_MAX = 600_000;

/** Whether a text has the form of an id, so that it is safe as a part of a URL. */
export function isRemoteId(id: unknown): id is string {
  return typeof id === "string" && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/.test(id) && !id.includes("..");
}

/** @throws {SandboxError} `unsupported` for a value that is not a snapshot of this backend. */
export function snapshotName(snapshot: JsonObject): SnapshotName {
  const { backend, id, workingDir } = snapshot ?? {};
  const known = backend === "opensandbox" && (workingDir === null || typeof workingDir === "string");
  if (known && isRemoteId(id)) return { id, workingDir };
  throw new SandboxError("unsupported", "The value is not a snapshot of an OpenSandbox sandbox.");
}

/** Makes the server take a snapshot of the whole sandbox, and waits until it is ready. */
export async function takeSnapshot(remote: RemoteSandbox, workingDir: string | null): Promise<JsonObject> {
  const id = await remote.createSnapshot();
  for (const deadline = performance.now() + READY_MS_MAX; performance.now() < deadline; await sleep(POLL_MS)) {
    const { state, message } = await remote.snapshotState(id);
    if (state === "Ready") return { backend: "opensandbox", id, workingDir };
    if (state === "Failed") {
      throw new SandboxError("os_error", `The server could not make a snapshot: ${message ?? "it does not say why"}.`);
    }
  }
  throw new SandboxError("timeout", `The snapshot ${show(id)} was not ready after ${READY_MS_MAX / 1000} seconds.`);
}

/**
 * Restores the files of a root from a snapshot.
 *
 * The server can only start new sandboxes from a snapshot. To keep this sandbox, a second one is started from the snapshot,
 * and its files are copied here.
 */
export async function restoreSnapshot(
  target: { readonly remote: RemoteSandbox; readonly root: string; readonly scratch: string },
  snapshot: JsonObject,
  options: OpenSandboxOptions,
  spec: SandboxSpec,
): Promise<void> {
  const { id, workingDir } = snapshotName(snapshot);
  const archive = `${target.scratch}/${uuidv7()}-archive`;
  const source = await createRemote({ ...options, timeoutSeconds: COPY_MS_MAX / 1000 }, spec, id);
  try {
    const packed = `/tmp/.skein-${uuidv7()}.tar`;
    await step(new RemoteShell(source), packScript(workingDir, packed), id);
    await target.remote.write(archive, source.read(packed));
  } finally {
    await source.kill().catch(() => {});
    await source.disconnect();
  }
  await step(new RemoteShell(target.remote), unpackScript(target.root, archive), id);
}

async function step(shell: RemoteShell, script: string, id: string): Promise<void> {
  const [kind] = await shell.ask(script, COPY_MS_MAX);
  if (kind === "done") return;
  const problem = kind === "missing" ? "its directory is not in there" : "its files could not be copied";
  throw new SandboxError("os_error", `The snapshot ${show(id)} cannot be restored: ${problem}.`);
}
